package httpmw_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
)

// numbered answers each run with its number, so that a replay can be told from a run.
func numbered(status int) http.HandlerFunc {
	var runs atomic.Int32
	return func(w http.ResponseWriter, _ *http.Request) {
		number := runs.Add(1)
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "run %d", number)
	}
}

func TestDefaultKeep(t *testing.T) {
	verdicts := map[int]bool{
		200: true, 201: true, 206: true, 299: true, 300: true, 303: true, 399: true,
		400: true, 402: true, 404: true, 405: true, 410: true, 412: true, 413: true, 418: true, 422: true, 451: true, 498: true,
		401: false, 403: false, 408: false, 409: false, 423: false, 425: false, 429: false, 499: false,
		500: false, 501: false, 502: false, 503: false, 504: false, 599: false, 600: false, 999: false,
	}
	for status, kept := range verdicts {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			handler := onceOver(t, numbered(status))
			record(handler, newRecorded("k", "")).check(t, status, "run 1", false)
			repeat := record(handler, newRecorded("k", ""))
			if kept {
				repeat.check(t, status, "run 1", true)
			} else {
				repeat.check(t, status, "run 2", false)
			}
		})
	}
	if httpmw.DefaultKeep(101, nil) {
		t.Error("101 is kept")
	}
}

func TestKeepDecides(t *testing.T) {
	type seen struct {
		status int
		header string
	}
	var asked []seen
	config := httpmw.Config{Keep: func(status int, header http.Header) bool {
		asked = append(asked, seen{status, header.Get("X-Step")})
		return status >= 500
	}}
	handlers := map[string]http.HandlerFunc{
		"kept": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Step", "written")
			w.WriteHeader(http.StatusBadGateway)
			w.Header().Set("X-Step", "late")
		},
		"dropped": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Step", "implicit") },
	}
	store := memstore.New()
	for i, test := range []struct {
		key      string
		status   int
		replayed bool
	}{{"kept", 502, false}, {"kept", 502, true}, {"dropped", 200, false}, {"dropped", 200, false}} {
		got := record(wrap(t, config, handlers[test.key], newOnce(t, store)), newRecorded(test.key, ""))
		if got.status != test.status || got.replayed != test.replayed {
			t.Errorf("request %d: got %d, replayed %t", i+1, got.status, got.replayed)
		}
	}
	want := []seen{{502, "written"}, {200, "implicit"}, {200, "implicit"}}
	if fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("Keep was asked %v, want %v", asked, want)
	}
}

// A flushed answer that is not to be kept leaves no tombstone either.
func TestFlushedFailureRunsAgain(t *testing.T) {
	var runs atomic.Int32
	handler := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_ = http.NewResponseController(w).Flush()
		_, _ = fmt.Fprintf(w, "run %d", runs.Add(1))
	})
	record(handler, newRecorded("k", "")).check(t, http.StatusInternalServerError, "run 1", false)
	record(handler, newRecorded("k", "")).check(t, http.StatusInternalServerError, "run 2", false)
}

// A handler that panics has answered nothing: the client sees what it would without the guard, and
// a repeat runs.
func TestPanicRunsAgain(t *testing.T) {
	for protocol, start := range protocols {
		for name, cause := range map[string]any{"error": errors.New("broken"), "abort": http.ErrAbortHandler} {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				caught := make(chan any, 1)
				var runs atomic.Int32
				guarded := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
					number := runs.Add(1)
					w.WriteHeader(http.StatusCreated)
					_, _ = fmt.Fprintf(w, "run %d", number)
					if number == 1 {
						panic(cause)
					}
				})
				server := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer func() {
						if p := recover(); p != nil {
							caught <- p
							panic(http.ErrAbortHandler)
						}
					}()
					guarded.ServeHTTP(w, r)
				}))
				if got := send(server, newPost(t.Context(), t, server.URL, "k")); got.err == nil {
					t.Errorf("the client got %d %q", got.status, got.body)
				}
				if got := receive(t, caught, "the panic"); got != cause {
					t.Errorf("the server got the panic %v, want %v", got, cause)
				}
				repeat := send(server, newPost(t.Context(), t, server.URL, "k"))
				repeat.check(t, http.StatusCreated, "run 2", false)
				again := send(server, newPost(t.Context(), t, server.URL, "k"))
				again.check(t, http.StatusCreated, "run 2", true)
			})
		}
	}
}

// net/http panics on a status that is none, so the recorder does, and there.
func TestInvalidStatusPanics(t *testing.T) {
	for _, status := range []int{-1, 0, 99, 1000} {
		handler := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
			defer func() {
				if got, want := recover(), fmt.Sprintf("invalid WriteHeader code %d", status); got != want {
					t.Errorf("panic %v, want %q", got, want)
				}
			}()
			w.WriteHeader(status)
		})
		record(handler, newRecorded("k", ""))
	}
}

// What is written for a panic that the handler itself recovers from is an answer like any other.
func TestRecoveredPanicIsAnAnswer(t *testing.T) {
	var runs atomic.Int32
	handler := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
		defer func() {
			_ = recover()
			_, _ = io.WriteString(w, "recovered")
		}()
		runs.Add(1)
		panic("broken")
	})
	record(handler, newRecorded("k", "")).check(t, http.StatusOK, "recovered", false)
	record(handler, newRecorded("k", "")).check(t, http.StatusOK, "recovered", true)
	if runs.Load() != 1 {
		t.Errorf("%d runs", runs.Load())
	}
}
