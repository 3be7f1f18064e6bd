package httpmw_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
)

// short are handlers that end before the length that they announced.
var short = map[string]http.HandlerFunc{
	"written": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusCreated)
		write(w, "half")
	},
	"nothing written": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "100") },
	"source broke off": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.Copy(w, io.MultiReader(strings.NewReader("half"), failingReader{errors.New("broken off")}))
	},
}

// A client that sees an answer break off does not get the half of it as the whole next time.
func TestShortAnswerIsNotReplayed(t *testing.T) {
	for protocol, start := range protocols {
		for name, handler := range short {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				var runs atomic.Int32
				server := start(t, onceOver(t, func(w http.ResponseWriter, r *http.Request) {
					runs.Add(1)
					handler(w, r)
				}))
				if got := send(server, newPost(t.Context(), t, server.URL+"/pay", "k")); got.err == nil {
					t.Errorf("the client takes %d %q for whole", got.status, got.body)
				}
				post(t, server).checkRefused(t, dedupe.AnswerUnavailable)
				if runs.Load() != 1 {
					t.Errorf("%d runs", runs.Load())
				}
			})
		}
	}
}

// A handler that writes more than it announced is told so by the real writer, and its client gets what
// it would without the guard.
func TestMoreThanAnnounced(t *testing.T) {
	for protocol, start := range protocols {
		t.Run(protocol, func(t *testing.T) {
			var failed [2]bool
			handler := func(i int) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Length", "4")
					write(w, "do")
					write(w, "ne")
					_, err := io.WriteString(w, "and more")
					failed[i] = err != nil
				}
			}
			bare := start(t, handler(0))
			want := send(bare, newPost(t.Context(), t, bare.URL, "k"))
			server := start(t, onceOver(t, handler(1)))
			got := send(server, newPost(t.Context(), t, server.URL+"/pay", "k"))
			if got.status != want.status || got.body != want.body || (got.err == nil) != (want.err == nil) || failed[0] != failed[1] {
				t.Errorf("got %d %q, %v; want %d %q, %v; told %t", got.status, got.body, got.err, want.status, want.body, want.err, failed)
			}
			post(t, server).checkRefused(t, dedupe.AnswerUnavailable)
		})
	}
}

// A Content-Length that is no number is nobody's: net/http removes it.
func TestLengthInVain(t *testing.T) {
	for _, length := range []string{"four", "-1", "99999999999999999999"} {
		server := http1(t, onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", length)
			write(w, "done")
		}))
		post(t, server).check(t, http.StatusOK, "done", false)
		post(t, server).check(t, http.StatusOK, "done", true)
	}
}

// An answer that is announced as too large is not held back at all, not even its beginning.
func TestAnnouncedLargeAnswerIsPassedAtOnce(t *testing.T) {
	for protocol, start := range protocols {
		t.Run(protocol, func(t *testing.T) {
			proceed, over := make(chan struct{}), make(chan struct{})
			server := start(t, wrap(t, httpmw.Config{MaxAnswer: 12_000}, func(w http.ResponseWriter, _ *http.Request) {
				defer close(over)
				w.Header().Set("Content-Length", "16000")
				write(w, page[:10_000])
				select {
				case <-proceed:
				case <-time.After(patience):
				}
				write(w, page[10_000:])
			}, newOnce(t, memstore.New())))
			response, err := server.Client().Do(newPost(t.Context(), t, server.URL+"/pay", "k"))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			begun := make([]byte, 1)
			if _, err := io.ReadFull(response.Body, begun); err != nil || begun[0] != page[0] {
				t.Fatalf("got %q, %v", begun, err)
			}
			select {
			case proceed <- struct{}{}:
			case <-over:
				t.Fatal("the beginning came when the handler was over")
			}
			if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != page[1:] {
				t.Errorf("got %d bytes, %v", len(rest), err)
			}
			post(t, server).checkRefused(t, dedupe.AnswerUnavailable)
		})
	}
}

// cuttingStore loses the last byte of every answer.
type cuttingStore struct{ dedupe.Store }

func (s cuttingStore) Complete(ctx context.Context, h dedupe.Holder, answer []byte, retention time.Duration) error {
	return s.Store.Complete(ctx, h, answer[:len(answer)-1], retention)
}

// A kept answer that has lost its end is not given for the whole where its length is known.
func TestKeptAnswerWithoutItsEnd(t *testing.T) {
	handler := wrap(t, httpmw.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		write(w, "done")
	}, newOnce(t, cuttingStore{memstore.New()}))
	record(handler, newRecorded("k", "")).check(t, http.StatusOK, "done", false)
	record(handler, newRecorded("k", "")).checkRefused(t, dedupe.AnswerUnavailable)
}
