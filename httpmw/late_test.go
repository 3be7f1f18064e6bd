package httpmw_test

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
)

// What a handler has started and left behind may still write. It changes nothing of the answer, of
// the record, or of what is made of a panic.
func TestWritesAfterTheHandler(t *testing.T) {
	for name, test := range map[string]struct {
		leave  func(http.ResponseWriter)
		status int
		body   string
	}{
		"kept":     {func(w http.ResponseWriter) { write(w, "done") }, http.StatusOK, "done"},
		"empty":    {func(http.ResponseWriter) {}, http.StatusOK, ""},
		"flushed":  {func(w http.ResponseWriter) { write(w, "done"); flush(w) }, http.StatusOK, "done"},
		"panicked": {func(w http.ResponseWriter) { write(w, "done"); panic("broken") }, http.StatusInternalServerError, "recovered"},
		"exited":   {func(w http.ResponseWriter) { write(w, "done"); runtime.Goexit() }, http.StatusInternalServerError, "recovered"},
	} {
		t.Run(name, func(t *testing.T) {
			var left http.ResponseWriter
			guarded := wrap(t, httpmw.Config{MaxAnswer: limit}, func(w http.ResponseWriter, _ *http.Request) {
				left = w
				test.leave(w)
			}, newOnce(t, memstore.New()))
			outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				returned, ended := false, make(chan struct{})
				go func() { // which Goexit ends
					defer close(ended)
					defer func() { _ = recover() }()
					guarded.ServeHTTP(w, r)
					returned = true
				}()
				<-ended
				_, _ = left.Write([]byte(page))
				_, _ = io.Copy(left, strings.NewReader(page))
				left.WriteHeader(http.StatusTeapot)
				_ = http.NewResponseController(left).Flush()
				if !returned {
					w.WriteHeader(http.StatusInternalServerError)
					write(w, "recovered")
				}
			})
			record(outer, newRecorded("k", "")).check(t, test.status, test.body, false)
			repeat := record(outer, newRecorded("k", ""))
			switch name {
			case "kept", "empty":
				repeat.check(t, test.status, test.body, true)
			case "flushed":
				repeat.checkRefused(t, dedupe.AnswerUnavailable)
			default:
				repeat.check(t, test.status, test.body, false)
			}
		})
	}
}

// A panic after a part of the answer has gone out is one all the same: the client sees the answer break
// off, and a repeat runs.
func TestPanicAfterAPart(t *testing.T) {
	parts := map[string]func(http.ResponseWriter){
		"flushed":        func(w http.ResponseWriter) { write(w, "part"); flush(w) },
		"over the limit": func(w http.ResponseWriter) { write(w, page) },
		"announced":      func(w http.ResponseWriter) { w.Header().Set("Content-Length", "16000"); write(w, page[:5001]) },
	}
	for protocol, start := range protocols {
		for name, part := range parts {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				var runs atomic.Int32
				server := start(t, wrap(t, httpmw.Config{MaxAnswer: limit}, func(w http.ResponseWriter, _ *http.Request) {
					if runs.Add(1) == 1 {
						part(w)
						panic(http.ErrAbortHandler)
					}
					write(w, "whole")
				}, newOnce(t, memstore.New(), dedupe.WithWait(patience)))) // the client may see the end first
				if got := send(server, newPost(t.Context(), t, server.URL+"/pay", "k")); got.err == nil {
					t.Errorf("the client takes %d %.99q for whole", got.status, got.body)
				}
				post(t, server).check(t, http.StatusOK, "whole", false)
				post(t, server).check(t, http.StatusOK, "whole", true)
			})
		}
	}
}

// http.TimeoutHandler outside answers before the handler has returned. The handler's answer is kept
// all the same.
func TestTimeoutHandlerOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guarded := onceOver(t, func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.Header().Set("Location", "/orders/1")
			w.WriteHeader(http.StatusCreated)
			write(w, "done")
		})
		limited := http.TimeoutHandler(guarded, time.Second, "too late")
		record(limited, newRecorded("k", "")).check(t, http.StatusServiceUnavailable, "too late", false)
		synctest.Wait()
		got := record(limited, newRecorded("k", ""))
		got.check(t, http.StatusCreated, "done", true)
		checkHeader(t, got, http.Header{"Location": {"/orders/1"}})
	})
}

// Inside, its answer is the handler's: kept in time, and too late not kept.
func TestTimeoutHandlerInside(t *testing.T) {
	for name, limit := range map[string]time.Duration{"in time": time.Hour, "too late": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			handler := http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if limit < time.Second {
					<-r.Context().Done()
					return
				}
				w.Header().Set("Location", "/orders/1")
				w.WriteHeader(http.StatusCreated)
				write(w, "done")
			}), limit, "too late")
			server := http1(t, onceOver(t, handler.ServeHTTP))
			for _, replayed := range []bool{false, true} {
				if limit < time.Second {
					post(t, server).check(t, http.StatusServiceUnavailable, "too late", false)
					continue
				}
				got := post(t, server)
				got.check(t, http.StatusCreated, "done", replayed)
				checkHeader(t, got, http.Header{"Location": {"/orders/1"}})
			}
		})
	}
}

// http.MaxBytesHandler inside limits what the handler reads, of the same body that the guard has read.
func TestMaxBytesHandlerInside(t *testing.T) {
	limited := http.MaxBytesHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var over *http.MaxBytesError
		if errors.As(err, &over) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		_, _ = w.Write(body)
	}), 5)
	for protocol, start := range protocols {
		t.Run(protocol, func(t *testing.T) {
			server := start(t, onceOver(t, limited.ServeHTTP))
			for _, replayed := range []bool{false, true} {
				post(t, server).check(t, http.StatusRequestEntityTooLarge, `{"to"`, replayed)
			}
		})
	}
}

// How much of its body a handler reads, and when, is of no account: the guard has read it all.
func TestHowAHandlerReads(t *testing.T) {
	type seen struct {
		text string
		err  error
	}
	late := make(chan seen, 1)
	ways := map[string]func(http.ResponseWriter, *http.Request){
		"not at all": func(w http.ResponseWriter, _ *http.Request) { write(w, "done") },
		"half": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(w, r.Body, 4000)
		},
		"twice": func(w http.ResponseWriter, r *http.Request) {
			for range 2 { // the second time there is nothing left, as without the guard
				if _, err := io.Copy(w, r.Body); err != nil {
					panic(err)
				}
			}
		},
		"later": func(_ http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			go func() {
				<-ctx.Done() // the handler has returned
				body, err := io.ReadAll(r.Body)
				late <- seen{string(body), err}
			}()
		},
	}
	for protocol, start := range protocols {
		for name, handler := range ways {
			for _, length := range []int64{int64(len(page)), -1} {
				t.Run(protocol+"/"+name, func(t *testing.T) {
					server := start(t, onceOver(t, handler))
					want := map[string]string{"not at all": "done", "half": page[:4000], "twice": page}[name]
					for _, replayed := range []bool{false, true} {
						r := newPost(t.Context(), t, server.URL, "k")
						r.Body, r.ContentLength = io.NopCloser(strings.NewReader(page)), length
						send(server, r).check(t, http.StatusOK, want, replayed)
					}
					if name == "later" {
						if got := receive(t, late, "what is read later"); got.text != page || got.err != nil {
							t.Errorf("got %d bytes, %v", len(got.text), got.err)
						}
					}
				})
			}
		}
	}
}
