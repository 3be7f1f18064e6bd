package httpmw_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
)

func flush(w http.ResponseWriter) {
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(err)
	}
}

func write(w io.Writer, text string) {
	if n, err := io.WriteString(w, text); n != len(text) || err != nil {
		panic(fmt.Sprintf("wrote %d of %d bytes: %v", n, len(text), err))
	}
}

// limit is the MaxAnswer of the tests of this file.
const limit = 5000

// unkept are handlers whose answer cannot be kept, although its status would.
var unkept = map[string]http.HandlerFunc{
	"one write over the limit": func(w http.ResponseWriter, _ *http.Request) { write(w, page) },
	"many writes over the limit": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/orders/1")
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("Location", "/late")
		for range limit + 1 {
			write(w, "x")
		}
	},
	"copied over the limit": func(w http.ResponseWriter, _ *http.Request) {
		write(w, "before")
		if n, err := io.Copy(w, struct{ io.Reader }{strings.NewReader(page)}); n != 16000 || err != nil {
			panic(fmt.Sprint(n, err))
		}
		write(w, "after")
	},
	"served over the limit": func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "page.txt", time.Unix(1e9, 0), strings.NewReader(page))
	},
	"announced over the limit": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "16000")
		write(w, page[:7])
		write(w, page[7:])
	},
	"flushed at once": func(w http.ResponseWriter, _ *http.Request) { flush(w) },
	"flushed": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		write(w, "<ht")
		write(w, "ml>")
		w.(http.Flusher).Flush()
		w.WriteHeader(http.StatusTeapot)
		write(w, "second")
	},
	"declared trailer": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		write(w, "body")
		w.Header().Set("X-Sum", "42")
	},
	"declared trailer without a body": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
	},
	"late trailer": func(w http.ResponseWriter, _ *http.Request) {
		write(w, page[:4900])
		w.Header().Set(http.TrailerPrefix+"X-Sum", "42")
	},
	"late trailer after a flush": func(w http.ResponseWriter, _ *http.Request) {
		write(w, "body")
		flush(w)
		w.Header().Set(http.TrailerPrefix+"X-Sum", "42")
	},
}

// An answer that cannot be kept reaches the client as it would without the guard. A repeat is told
// so, and does not run.
func TestUnkeptAnswers(t *testing.T) {
	for protocol, start := range protocols {
		for name, handler := range unkept {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				var runs atomic.Int32
				guarded := start(t, wrap(t, httpmw.Config{MaxAnswer: limit}, func(w http.ResponseWriter, r *http.Request) {
					runs.Add(1)
					handler(w, r)
				}, newOnce(t, memstore.New())))
				bare := transcribe(t, start(t, handler), http.MethodPost)
				checkSame(t, "first answer", transcribe(t, guarded, http.MethodPost), bare)

				repeat := transcribe(t, guarded, http.MethodPost)
				if !strings.Contains(repeat.Body, "#"+dedupe.AnswerUnavailable.String()) || runs.Load() != 1 {
					t.Errorf("%d runs; repeat got %q %q", runs.Load(), repeat.Lines, repeat.Body)
				}
			})
		}
	}
}

// The client is sent what was flushed while the handler is still running.
func TestFlushedBytesArriveEarly(t *testing.T) {
	for protocol, start := range protocols {
		t.Run(protocol, func(t *testing.T) {
			proceed := make(chan struct{})
			server := start(t, onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
				write(w, "one")
				flush(w)
				<-proceed
				write(w, "two")
				flush(w)
				<-proceed
				write(w, "three")
			}))
			response, err := server.Client().Do(newPost(t.Context(), t, server.URL, "k"))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			for _, part := range []string{"one", "two"} {
				got := make([]byte, len(part))
				if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != part {
					t.Fatalf("got %q, %v; want %q", got, err, part)
				}
				proceed <- struct{}{}
			}
			if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != "three" {
				t.Errorf("got %q, %v", rest, err)
			}
		})
	}
}

// An answer of exactly the limit is kept, one byte more is not.
func TestMaxAnswerIsInclusive(t *testing.T) {
	ways := map[string]func(http.ResponseWriter, string){
		"written": func(w http.ResponseWriter, body string) { write(w, body[:1]); write(w, body[1:]) },
		"copied": func(w http.ResponseWriter, body string) {
			_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader(body)})
		},
	}
	for name, answer := range ways {
		for size, kept := range map[int]bool{limit - 1: true, limit: true, limit + 1: false} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				handler := wrap(t, httpmw.Config{MaxAnswer: limit}, func(w http.ResponseWriter, _ *http.Request) {
					answer(w, page[:size])
				}, newOnce(t, memstore.New()))
				record(handler, newRecorded("k", "")).check(t, http.StatusOK, page[:size], false)
				repeat := record(handler, newRecorded("k", ""))
				if kept {
					repeat.check(t, http.StatusOK, page[:size], true)
				} else {
					repeat.checkRefused(t, dedupe.AnswerUnavailable)
				}
			})
		}
	}
}

// hijacking are handlers that take over the connection.
var hijacking = map[string]http.HandlerFunc{
	"at once": func(w http.ResponseWriter, _ *http.Request) { talk(w, "HTTP/1.1 299 Mine\r\n\r\nraw") },
	"after 101": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Upgrade", "talk")
		w.Header().Set("Connection", "Upgrade")
		w.WriteHeader(http.StatusSwitchingProtocols)
		talk(w, "raw")
	},
	"without asking the writer": func(w http.ResponseWriter, _ *http.Request) {
		talk(unwrapOnly{w}, "HTTP/1.1 299 Mine\r\n\r\nraw")
	},
}

// talk says something on the connection, which is then no longer the writer's.
func talk(w http.ResponseWriter, text string) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	write(connection, text)
	if _, err := w.Write([]byte("x")); err != http.ErrHijacked {
		panic(fmt.Sprint("a write after the hijack: ", err))
	}
}

// unwrapOnly is the least that a middleware wraps a writer in.
type unwrapOnly struct{ http.ResponseWriter }

func (u unwrapOnly) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func TestHijackedConnection(t *testing.T) {
	for name, handler := range hijacking {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			// The connection ends before the handler does, so that a repeat may have to wait for it.
			guarded := http1(t, wrap(t, httpmw.Config{}, func(w http.ResponseWriter, r *http.Request) {
				runs.Add(1)
				handler(w, r)
			}, newOnce(t, memstore.New(), dedupe.WithWait(patience))))
			const request = "POST / HTTP/1.1\r\nHost: test\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n"
			bare := dateless(exchange(t, http1(t, handler), request))
			if first := dateless(exchange(t, guarded, request)); first != bare || !strings.Contains(bare, "raw") {
				t.Errorf("got %q, want %q", first, bare)
			}
			repeat := exchange(t, guarded, strings.Replace(request, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
			if !strings.Contains(string(repeat), "#"+dedupe.AnswerUnavailable.String()) || runs.Load() != 1 {
				t.Errorf("%d runs; repeat got %q", runs.Load(), repeat)
			}
		})
	}
}

// dateless returns an answer without its Date.
func dateless(raw []byte) string {
	var lines []string
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "Date: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// 101 is no verdict, but whoever keeps nothing of what was said may not run it again either.
func TestSwitchingProtocolsLeavesATombstone(t *testing.T) {
	handler := onceOver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusSwitchingProtocols) })
	if got := record(handler, newRecorded("k", "")); got.status != http.StatusSwitchingProtocols {
		t.Errorf("got %d", got.status)
	}
	record(handler, newRecorded("k", "")).checkRefused(t, dedupe.AnswerUnavailable)
}

// A hijack that fails leaves the recording as it is.
func TestFailedHijackKeepsTheAnswer(t *testing.T) {
	handler := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
		if _, _, err := w.(http.Hijacker).Hijack(); err == nil {
			panic("hijacked")
		}
		write(w, "done")
	})
	broken := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(brokenHijacker{w}, r) })
	record(broken, newRecorded("k", "")).check(t, http.StatusOK, "done", false)
	record(broken, newRecorded("k", "")).check(t, http.StatusOK, "done", true)
}

type brokenHijacker struct{ http.ResponseWriter }

func (brokenHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrHijacked
}
