package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
)

// A client that hangs up costs neither the answer nor the key.
func TestClientHangsUp(t *testing.T) {
	for protocol, start := range protocols {
		t.Run(protocol, func(t *testing.T) {
			started, settled := make(chan struct{}), make(chan dedupe.Event, 10)
			var runs atomic.Int32
			guard := newOnce(t, memstore.New(), dedupe.WithObserver(func(e dedupe.Event) {
				if e.Kind == dedupe.EventSettled {
					settled <- e
				}
			}))
			server := start(t, wrap(t, httpmw.Config{}, func(w http.ResponseWriter, r *http.Request) {
				runs.Add(1)
				close(started)
				<-r.Context().Done()
				if cause := context.Cause(r.Context()); errors.Is(cause, dedupe.ErrLeaseLost) {
					t.Errorf("the lease was lost: %v", cause)
				}
				w.WriteHeader(http.StatusCreated)
				write(w, "done")
			}, guard))

			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-started
				cancel()
			}()
			if got := send(server, newPost(ctx, t, server.URL+"/pay", "k")); !errors.Is(got.err, context.Canceled) {
				t.Errorf("got %d, %v", got.status, got.err)
			}
			receive(t, settled, "the answer to be saved")
			post(t, server).check(t, http.StatusCreated, "done", true)
			if runs.Load() != 1 {
				t.Errorf("%d runs", runs.Load())
			}
		})
	}
}

// A repeat that waits gets the first one's answer as soon as there is one.
func TestWaitThenReplay(t *testing.T) {
	for protocol, start := range protocols {
		t.Run(protocol, func(t *testing.T) {
			arrived := make(chan struct{}, 2)
			arrives := dedupe.WithSkip(func(dedupe.Request) bool { arrived <- struct{}{}; return false })
			started, proceed := make(chan struct{}), make(chan struct{})
			server := start(t, wrap(t, httpmw.Config{}, func(w http.ResponseWriter, _ *http.Request) {
				close(started)
				<-proceed
				write(w, "done")
			}, newOnce(t, memstore.New(), dedupe.WithWait(patience), arrives)))

			first, second := make(chan reply, 1), make(chan reply, 1)
			ask := func(answer chan<- reply) { answer <- send(server, newPost(t.Context(), t, server.URL, "k")) }
			go ask(first)
			receive(t, started, "the first request")
			receive(t, arrived, "the first request")
			go ask(second)
			receive(t, arrived, "the second request to arrive")
			close(proceed)
			receive(t, first, "the first answer").check(t, http.StatusOK, "done", false)
			receive(t, second, "the second answer").check(t, http.StatusOK, "done", true)
		})
	}
}

// parallel sends n requests with one key at once.
func parallel(t *testing.T, handler http.Handler, start func(testing.TB, http.Handler) *httptest.Server, n int) <-chan reply {
	t.Helper()
	s := start(t, handler)
	answers := make(chan reply, n)
	var together sync.WaitGroup
	together.Add(n)
	for range n {
		go func() {
			r := newPost(t.Context(), t, s.URL, "k")
			together.Done()
			together.Wait()
			answers <- send(s, r)
		}()
	}
	return answers
}

const duplicates = 100

// Of many requests with one key that are there at once, one runs and the others are refused.
func TestParallelDuplicatesConflict(t *testing.T) {
	for protocol, start := range protocols {
		t.Run(protocol, func(t *testing.T) {
			proceed := make(chan struct{})
			var runs atomic.Int32
			handler := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
				runs.Add(1)
				<-proceed
				write(w, "done")
			})
			answers := parallel(t, handler, start, duplicates)
			for range duplicates - 1 {
				receive(t, answers, "a conflict").checkRefused(t, dedupe.InFlight)
			}
			close(proceed)
			receive(t, answers, "the answer").check(t, http.StatusOK, "done", false)
			record(handler, newPost(t.Context(), t, "http://test/", "k")).check(t, http.StatusOK, "done", true)
			if runs.Load() != 1 {
				t.Errorf("%d runs", runs.Load())
			}
		})
	}
}

// When they wait, all get the one answer.
func TestParallelDuplicatesWait(t *testing.T) {
	for protocol, start := range protocols {
		t.Run(protocol, func(t *testing.T) {
			var runs atomic.Int32
			answers := parallel(t, wrap(t, httpmw.Config{}, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				_, _ = fmt.Fprintf(w, "run %d of %s", runs.Add(1), body)
			}, newOnce(t, memstore.New(), dedupe.WithWait(patience))), start, duplicates)
			replays := 0
			for range duplicates {
				got := receive(t, answers, "an answer")
				got.check(t, http.StatusOK, `run 1 of {"to":7}`, got.replayed)
				if got.replayed {
					replays++
				}
			}
			if replays != duplicates-1 || runs.Load() != 1 {
				t.Errorf("%d replays of %d runs", replays, runs.Load())
			}
		})
	}
}

// Requests on one account run one at a time, whatever their number.
func TestParallelWritersOfOneAccount(t *testing.T) {
	var inside atomic.Int32
	balance := 1000 // guarded by nothing else
	handler := wrap(t, httpmw.Config{}, func(http.ResponseWriter, *http.Request) {
		if inside.Add(1) != 1 {
			t.Error("two at a time")
		}
		balance -= 10
		inside.Add(-1)
	}, newSerialize(t, memstore.New(), func(dedupe.Request) (string, error) { return "7", nil }, dedupe.WithWait(patience)))
	answers := parallel(t, handler, http1, duplicates)
	for range duplicates {
		receive(t, answers, "an answer").check(t, http.StatusOK, "", false)
	}
	if balance != 0 {
		t.Errorf("the balance is %d", balance)
	}
}
