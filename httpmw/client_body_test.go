package httpmw_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
)

// What can be read once is sent once.
func TestBodyThatCannotBeHadAgain(t *testing.T) {
	t.Parallel()
	seen := &arrivals{next: inTurn(refuse(dedupe.InFlight, time.Second), done)}
	server := http1(t, seen)
	r := newCall(t.Context(), t, server.URL)
	r.GetBody = nil
	do(newClient(t, httpmw.ClientConfig{}, server.Client().Transport), r).checkRefused(t, dedupe.InFlight)
	seen.all(t, 1)
}

func TestNoBodyNeedsNoGetBody(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.ReadCloser{"nil": nil, "NoBody": http.NoBody} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				seen := &arrivals{next: inTurn(refuse(dedupe.InFlight, time.Second), done)}
				r := newCall(t.Context(), t, bankURL)
				r.Body, r.GetBody, r.ContentLength = body, nil, 0
				do(newClient(t, httpmw.ClientConfig{}, pipes(t, seen)), r).check(t, http.StatusOK, "done", false)
				seen.oneKey(t, 2)
			})
		})
	}
}

func TestGetBodyFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the file is gone")
		seen := &arrivals{next: refuse(dedupe.InFlight, time.Second)}
		r := newCall(t.Context(), t, bankURL)
		r.GetBody = func() (io.ReadCloser, error) { return nil, gone }
		if got := do(newClient(t, httpmw.ClientConfig{}, pipes(t, seen)), r); !errors.Is(got.err, gone) {
			t.Errorf("got %+v", got)
		}
		seen.all(t, 1)
	})
}

// A safe method has no key, and is refused when a guard was built to look at it.
func TestSafeMethodIsSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &arrivals{next: inTurn(refuse(dedupe.Locked, time.Second), done)}
		r := newCall(t.Context(), t, bankURL)
		r.Method = http.MethodGet
		do(newClient(t, httpmw.ClientConfig{}, pipes(t, seen)), r).check(t, http.StatusOK, "done", false)
		if all := seen.all(t, 2); all[0].keys != nil || all[1].keys != nil {
			t.Errorf("keys %q and %q", all[0].keys, all[1].keys)
		}
	})
}

// responseBody tells how it was read and closed.
type responseBody struct {
	io.Reader

	ended, closed bool
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}

func (b *responseBody) Close() error {
	b.closed = true
	return nil
}

// A refusal's connection is free while its request waits. What is no refusal is not read for the
// caller, however long it is.
func TestBodiesOfResponses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("connection reset")
		bodies := []*responseBody{
			{Reader: strings.NewReader(inFlight)},
			{Reader: io.MultiReader(strings.NewReader(inFlight[:9]), failingReader{broken})},
		}
		sent := 0
		transport := httpmw.NewTransport(baseFunc(func(r *http.Request) (*http.Response, error) {
			if body, err := io.ReadAll(r.Body); string(body) != `{"to":7}` {
				t.Errorf("attempt %d has the body %q, error %v", sent+1, body, err)
			}
			if sent == 1 && (!bodies[0].ended || !bodies[0].closed) {
				t.Errorf("the refusal was read to its end: %t, closed: %t", bodies[0].ended, bodies[0].closed)
			}
			sent++
			return &http.Response{
				StatusCode: http.StatusConflict, Body: bodies[sent-1],
				Header: http.Header{"Content-Type": {"application/problem+json"}},
			}, nil
		}))
		r := newCall(t.Context(), t, bankURL)
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if bodies[1].closed {
			t.Error("what is the caller's was closed")
		}
		read, err := io.ReadAll(response.Body)
		if !bytes.Equal(read, []byte(inFlight[:9])) || !errors.Is(err, broken) {
			t.Errorf("read %q, error %v", read, err)
		}
		if err := response.Body.Close(); err != nil || !bodies[1].closed {
			t.Errorf("error %v, closed %t", err, bodies[1].closed)
		}
	})
}

func TestErrorsOfTheBase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused, failed := pipes(t, refuse(dedupe.InFlight, time.Second)), errors.New("no route to host")
		sent := 0
		client := newClient(t, httpmw.ClientConfig{}, baseFunc(func(r *http.Request) (*http.Response, error) {
			if sent++; sent > 1 {
				return nil, failed
			}
			return refused.RoundTrip(r)
		}))
		if got := do(client, newCall(t.Context(), t, bankURL)); !errors.Is(got.err, failed) || sent != 2 {
			t.Errorf("got %+v after %d attempts", got, sent)
		}
	})
}
