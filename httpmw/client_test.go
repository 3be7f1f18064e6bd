package httpmw_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
)

func TestEachCallHasOneKey(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	seen := &arrivals{next: onceOver(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, runs.Add(1)) })}
	server := http1(t, seen)
	client := newClient(t, httpmw.ClientConfig{}, server.Client().Transport)

	const calls = 20
	var sent sync.WaitGroup
	for range calls {
		sent.Go(func() {
			r := newCall(t.Context(), t, server.URL+"/pay")
			if got := do(client, r); got.status != http.StatusOK || got.replayed {
				t.Errorf("got %+v", got)
			}
			if len(r.Header) != 0 {
				t.Errorf("the caller's request was given %v", r.Header)
			}
		})
	}
	sent.Wait()

	keys := make(map[string]bool)
	for _, one := range seen.all(t, calls) {
		key, err := uuid.Parse(strings.Join(one.keys, "|"))
		if err != nil || key.Version() != 7 {
			t.Errorf("the key is %q, error %v; want a UUID of version 7", one.keys, err)
		}
		keys[key.String()] = true
	}
	if len(keys) != calls || runs.Load() != calls {
		t.Errorf("%d keys and %d runs; want %d", len(keys), runs.Load(), calls)
	}
}

func TestKeysOfTheCaller(t *testing.T) {
	t.Parallel()
	never := func() string { panic("there is a key") }
	for name, test := range map[string]struct {
		config httpmw.ClientConfig
		change func(*http.Request) *http.Request
		want   []string
	}{
		"in the context": {httpmw.ClientConfig{NewKey: never}, func(r *http.Request) *http.Request {
			return r.WithContext(dedupe.ContextWithKey(r.Context(), "mine"))
		}, []string{"mine"}},
		"in the request": {httpmw.ClientConfig{NewKey: never}, func(r *http.Request) *http.Request {
			r.Header.Set(keyHeader, "mine")
			return r.WithContext(dedupe.ContextWithKey(r.Context(), "other"))
		}, []string{"mine"}},
		"in the request, spelled otherwise": {httpmw.ClientConfig{NewKey: never}, func(r *http.Request) *http.Request {
			r.Header["idempotency-key"] = []string{"mine"}
			return r
		}, []string{"mine"}},
		"declined": {httpmw.ClientConfig{NewKey: never}, func(r *http.Request) *http.Request {
			r.Header[keyHeader] = nil
			return r
		}, nil},
		"made": {httpmw.ClientConfig{NewKey: func() string { return "made" }}, func(r *http.Request) *http.Request {
			return r
		}, []string{"made"}},
		"of a safe method": {httpmw.ClientConfig{NewKey: never}, func(r *http.Request) *http.Request {
			r.Method = http.MethodGet
			return r
		}, nil},
		"of a method that is not named": {httpmw.ClientConfig{NewKey: never, Methods: []string{"PATCH"}}, func(r *http.Request) *http.Request {
			return r
		}, nil},
		"of a safe method that is named": {httpmw.ClientConfig{Methods: []string{"GET"}, NewKey: func() string { return "made" }}, func(r *http.Request) *http.Request {
			r.Method = ""
			return r
		}, []string{"made"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &arrivals{next: http.HandlerFunc(done)}
			server := http1(t, seen)
			r := test.change(newCall(t.Context(), t, server.URL))
			before := r.Header.Clone()
			do(newClient(t, test.config, server.Client().Transport), r).check(t, http.StatusOK, "done", false)
			if got := seen.all(t, 1)[0].keys; !slices.Equal(got, test.want) {
				t.Errorf("the server got the keys %q, want %q", got, test.want)
			}
			if !maps.EqualFunc(before, r.Header, slices.Equal) {
				t.Errorf("the caller's header became %v", r.Header)
			}
		})
	}
}

func TestNoKeyToBeHad(t *testing.T) {
	t.Parallel()
	client := newClient(t, httpmw.ClientConfig{NewKey: func() string { return "" }}, baseFunc(func(*http.Request) (*http.Response, error) {
		panic("sent without a key")
	}))
	for name, ctx := range map[string]func(*http.Request) *http.Request{
		"NewKey": func(r *http.Request) *http.Request { return r },
		"context": func(r *http.Request) *http.Request {
			return r.WithContext(dedupe.ContextWithKey(r.Context(), ""))
		},
	} {
		body := newTracked("{}")
		r := ctx(newCall(t.Context(), t, bankURL))
		r.Body = body
		if got := do(client, r); got.err == nil || !strings.Contains(got.err.Error(), "key of the call is empty") {
			t.Errorf("%s: got %+v", name, got)
		}
		if !body.closed {
			t.Errorf("%s: the request's body is still open", name)
		}
		r.Body = nil
		if got := do(client, r); got.err == nil {
			t.Errorf("%s: got %+v without a body", name, got)
		}
	}
}

// A request that nobody made with http.NewRequest may have no header.
func TestRequestWithoutHeader(t *testing.T) {
	t.Parallel()
	var sent *http.Request
	transport := httpmw.NewTransport(baseFunc(func(r *http.Request) (*http.Response, error) {
		sent = r
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	r := (&http.Request{Method: http.MethodPost}).WithContext(t.Context())
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if sent.Header.Get(keyHeader) == "" || r.Header != nil || response.Request != sent {
		t.Errorf("sent %v, the caller's header is %v, the response is of %p; want %p", sent.Header, r.Header, response.Request, sent)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		method string
		keep   bool
	}{
		"301": {http.StatusMovedPermanently, http.MethodGet, false},
		"302": {http.StatusFound, http.MethodGet, false},
		"303": {http.StatusSeeOther, http.MethodGet, false},
		"307": {http.StatusTemporaryRedirect, http.MethodPost, true},
		"308": {http.StatusPermanentRedirect, http.MethodPost, true},
	} {
		for protocol, start := range protocols {
			t.Run(name+" "+protocol, func(t *testing.T) {
				t.Parallel()
				mux := http.NewServeMux()
				mux.Handle("/1", http.RedirectHandler("/2", test.status))
				mux.Handle("/2", http.RedirectHandler("/3", test.status))
				mux.Handle("/3", wrap(t, httpmw.Config{}, echo, newOnce(t, memstore.New(), dedupe.WithOptionalKey())))
				seen := &arrivals{next: mux}
				server := start(t, seen)
				client := newClient(t, httpmw.ClientConfig{}, server.Client().Transport)

				got := do(client, newCall(t.Context(), t, server.URL+"/1"))
				all := seen.all(t, 3)
				if last := all[2]; got.status != http.StatusOK || last.method != test.method || last.path != "/3" {
					t.Fatalf("got %+v, after %+v", got, all)
				}
				if test.keep {
					seen.oneKey(t, 3)
					if all[2].body != `{"to":7}` {
						t.Errorf("the body became %q", all[2].body)
					}
				} else if len(all[0].keys) != 1 || all[1].keys != nil || all[2].keys != nil {
					t.Errorf("keys %q, %q, %q; want one for the POST alone", all[0].keys, all[1].keys, all[2].keys)
				}
			})
		}
	}
}

// A GET that has a key at all has one of its own: it is another request.
func TestRedirectToAnotherMethod(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("/1", http.RedirectHandler("/2", http.StatusSeeOther))
	mux.HandleFunc("/2", done)
	seen := &arrivals{next: mux}
	server := http1(t, seen)
	client := newClient(t, httpmw.ClientConfig{Methods: []string{"POST", "GET"}}, server.Client().Transport)
	do(client, newCall(t.Context(), t, server.URL+"/1")).check(t, http.StatusOK, "done", false)
	if all := seen.all(t, 2); len(all[0].keys) != 1 || len(all[1].keys) != 1 || all[0].keys[0] == all[1].keys[0] {
		t.Errorf("keys %q and %q", all[0].keys, all[1].keys)
	}
}

// Between a Transport and the network there may be others that send requests on in their own name.
func TestRedirectBehindAnotherRoundTripper(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("/1", http.RedirectHandler("/2", http.StatusTemporaryRedirect))
	mux.HandleFunc("/2", done)
	seen := &arrivals{next: mux}
	server := http1(t, seen)
	client := newClient(t, httpmw.ClientConfig{}, baseFunc(func(r *http.Request) (*http.Response, error) {
		response, err := server.Client().Transport.RoundTrip(r)
		if err == nil {
			response.Request = nil
		}
		return response, err
	}))
	do(client, newCall(t.Context(), t, server.URL+"/1")).check(t, http.StatusOK, "done", false)
	seen.oneKey(t, 2)
}

// A connection that dies after the request was handled: Go's own transport sends a POST with an
// Idempotency-Key again, on a new one.
func TestDeadConnection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		guards []*dedupe.Guard
		runs   int64
	}{
		"behind Once":  {[]*dedupe.Guard{newOnce(t, memstore.New())}, 1},
		"without Once": {nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int64
			pay := wrap(t, httpmw.Config{}, func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, "run ", runs.Add(1))
			}, test.guards...)
			mux := http.NewServeMux()
			mux.HandleFunc("/warm", done)
			mux.Handle("/pay", inTurn(func(_ http.ResponseWriter, r *http.Request) {
				pay.ServeHTTP(httptest.NewRecorder(), r) // it runs, and its answer is lost
				panic(http.ErrAbortHandler)
			}, pay.ServeHTTP))
			seen := &arrivals{next: mux}
			server := http1(t, seen)
			client := newClient(t, httpmw.ClientConfig{Methods: []string{"POST"}}, server.Client().Transport)

			get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/warm", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			do(client, get).check(t, http.StatusOK, "done", false) // only a connection that was in use is given up so
			got := do(client, newCall(t.Context(), t, server.URL+"/pay"))
			got.check(t, http.StatusOK, fmt.Sprint("run ", test.runs), test.guards != nil)
			if all := seen.all(t, 3)[1:]; !slices.Equal(all[0].keys, all[1].keys) || len(all[0].keys) != 1 {
				t.Errorf("keys %q and %q", all[0].keys, all[1].keys)
			}
			if runs.Load() != test.runs {
				t.Errorf("%d runs, want %d", runs.Load(), test.runs)
			}
		})
	}
}

// A crash between the call and its answer: the one who comes after has the key, and no new request
// would do.
func TestCallAgainAfterACrash(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	server := http1(t, onceOver(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "run ", runs.Add(1)) }))
	ctx := dedupe.ContextWithKey(t.Context(), "stored")
	for i := range 2 {
		client := newClient(t, httpmw.ClientConfig{}, server.Client().Transport)
		do(client, newCall(ctx, t, server.URL)).check(t, http.StatusOK, "run 1", i > 0)
	}
}

func TestReplayed(t *testing.T) {
	t.Parallel()
	if httpmw.Replayed(nil) || httpmw.Replayed(&http.Response{}) {
		t.Error("nothing is a replay")
	}
}

type closingBase struct {
	baseFunc

	closed bool
}

func (b *closingBase) CloseIdleConnections() { b.closed = true }

func TestCloseIdleConnections(t *testing.T) {
	t.Parallel()
	base := &closingBase{}
	newClient(t, httpmw.ClientConfig{}, base).CloseIdleConnections()
	if !base.closed {
		t.Error("the base was not told")
	}
	newClient(t, httpmw.ClientConfig{}, base.baseFunc).CloseIdleConnections() // has nothing to be told
}

func TestClientConfig(t *testing.T) {
	t.Parallel()
	_, err := httpmw.ClientConfig{
		Header: "Cookie:", Methods: []string{"POST", "G ET"}, MaxAttempts: -1, MaxWait: time.Millisecond,
	}.Transport(nil)
	for _, want := range []string{
		`Header is "Cookie:", which is not the name of a header`, `Methods has "G ET"`, "MaxAttempts is -1", "MaxWait is 1ms",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	if _, err := (httpmw.ClientConfig{Header: "x-request-id", MaxAttempts: 1000, MaxWait: 24 * time.Hour}).Transport(nil); err != nil {
		t.Error(err)
	}
}

// Without a base there is http.DefaultTransport, and Header may be any.
func TestDefaultBase(t *testing.T) {
	t.Parallel()
	server := http1(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Payment"))
	}))
	client := newClient(t, httpmw.ClientConfig{Header: "x-payment", NewKey: func() string { return "made" }}, nil)
	do(client, newCall(t.Context(), t, server.URL)).check(t, http.StatusOK, "made", false)
}
