package httpmw_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// plain is a writer without any optional interface.
type plain struct{ http.ResponseWriter }

// flushing, hijackable and both are plain writers with optional interfaces.
type (
	flushing struct {
		plain
		*calls
	}
	hijackable struct {
		plain
		hijack
	}
	both struct {
		plain
		*calls
		hijack
	}
)

type calls struct{ flushes int }

func (c *calls) Flush() { c.flushes++ }

type hijack struct{}

var errHijack = errors.New("hijacking is refused")

func (hijack) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errHijack }

// The recorder offers what the wrapped writer does, and no more.
func TestOptionalInterfaces(t *testing.T) {
	for name, test := range map[string]struct {
		under             func(plain) http.ResponseWriter
		flusher, hijacker bool
		flushes           bool // by http.ResponseController
	}{
		"plain":             {under: func(p plain) http.ResponseWriter { return p }},
		"flusher":           {under: func(p plain) http.ResponseWriter { return flushing{p, &calls{}} }, flusher: true, flushes: true},
		"hijacker":          {under: func(p plain) http.ResponseWriter { return hijackable{p, hijack{}} }, hijacker: true},
		"both":              {under: func(p plain) http.ResponseWriter { return both{p, &calls{}, hijack{}} }, flusher: true, hijacker: true, flushes: true},
		"unwrapped plain":   {under: func(p plain) http.ResponseWriter { return unwrapOnly{p} }},
		"unwrapped to both": {under: func(p plain) http.ResponseWriter { return unwrapOnly{both{p, &calls{}, hijack{}}} }, hijacker: true, flushes: true},
	} {
		t.Run(name, func(t *testing.T) {
			handler := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
				if _, got := w.(http.Flusher); got != test.flusher {
					t.Errorf("http.Flusher: %t", got)
				}
				if _, got := w.(http.Hijacker); got != test.hijacker {
					t.Errorf("http.Hijacker: %t", got)
				}
				for _, controller := range []*http.ResponseController{http.NewResponseController(w), http.NewResponseController(unwrapOnly{w})} {
					if _, _, err := controller.Hijack(); errors.Is(err, errHijack) != test.hijacker || errors.Is(err, http.ErrNotSupported) == test.hijacker {
						t.Errorf("Hijack: %v", err)
					}
					if err := controller.Flush(); (err == nil) != test.flushes || errors.Is(err, http.ErrNotSupported) == test.flushes {
						t.Errorf("Flush: %v", err)
					}
				}
				write(w, "done")
			})
			outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				handler.ServeHTTP(test.under(plain{w}), r)
			})
			record(outer, newRecorded("k", "")).check(t, http.StatusOK, "done", false)
			repeat := record(outer, newRecorded("k", ""))
			if test.flushes {
				repeat.checkRefused(t, dedupe.AnswerUnavailable)
			} else { // a flush that nobody carries out changes nothing
				repeat.check(t, http.StatusOK, "done", true)
			}
		})
	}
}

// However a handler reaches for Flush, the answer is seen to have been flushed, and passed on to
// the real writer.
func TestFlushIsNotBypassed(t *testing.T) {
	ways := map[string]func(http.ResponseWriter) error{
		"controller":           func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
		"unwrapped controller": func(w http.ResponseWriter) error { return http.NewResponseController(unwrapOnly{w}).Flush() },
		"flusher":              func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil },
		"error flusher":        func(w http.ResponseWriter) error { return w.(interface{ FlushError() error }).FlushError() },
	}
	for name, flush := range ways {
		t.Run(name, func(t *testing.T) {
			under := flushing{plain{httptest.NewRecorder()}, &calls{}}
			handler := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
				write(w, "done")
				if err := flush(w); err != nil {
					t.Error(err)
				}
			})
			handler.ServeHTTP(under, newRecorded("k", ""))
			if under.flushes != 1 {
				t.Errorf("%d flushes", under.flushes)
			}
			record(handler, newRecorded("k", "")).checkRefused(t, dedupe.AnswerUnavailable)
		})
	}
}

// Deadlines and full duplex are set on the real connection, and take nothing out of the record.
func TestControllerReachesTheConnection(t *testing.T) {
	server := http1(t, onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, writer := range []http.ResponseWriter{w, unwrapOnly{w}} {
			controller := http.NewResponseController(writer)
			deadline := time.Now().Add(patience)
			if err := errors.Join(controller.SetReadDeadline(deadline), controller.SetWriteDeadline(deadline), controller.EnableFullDuplex()); err != nil {
				t.Error(err)
			}
		}
		write(w, "done")
	}))
	post(t, server).check(t, http.StatusOK, "done", false)
	post(t, server).check(t, http.StatusOK, "done", true)
}

// A write deadline that has passed cuts off the client, and not the record.
func TestExpiredWriteDeadlineKeepsTheAnswer(t *testing.T) {
	server := http1(t, onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)); err != nil {
			t.Error(err)
		}
		write(w, "done")
	}))
	if got := send(server, newPost(t.Context(), t, server.URL+"/pay", "k")); got.err == nil {
		t.Errorf("the client got %d %q", got.status, got.body)
	}
	post(t, server).check(t, http.StatusOK, "done", true)
}

// Every way to write ends up in the record.
func TestWaysToWrite(t *testing.T) {
	server := http1(t, onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
		write(w, "a") // by io.StringWriter
		_, _ = w.Write([]byte("b"))
		if n, err := w.(io.ReaderFrom).ReadFrom(http.NoBody); n != 0 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		if n, err := w.(io.StringWriter).WriteString("c"); n != 1 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		buffered := bufio.NewWriter(w)
		write(buffered, "d")
		_ = buffered.Flush()
		_, _ = io.Copy(unwrapOnly{w}, io.LimitReader(endless{}, 3))
	}))
	post(t, server).check(t, http.StatusOK, "abcdeee", false)
	post(t, server).check(t, http.StatusOK, "abcdeee", true)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'e'
	}
	return len(p), nil
}

// A source that breaks off tells the handler so, and what it gave is in the answer.
func TestBrokenSource(t *testing.T) {
	broken := errors.New("broken off")
	for name, start := range map[string]string{"kept": "", "passed": page} {
		t.Run(name, func(t *testing.T) {
			handler := wrap(t, httpmw.Config{MaxAnswer: limit}, func(w http.ResponseWriter, _ *http.Request) {
				write(w, start)
				n, err := io.Copy(w, io.MultiReader(io.LimitReader(endless{}, 3), failingReader{broken}))
				if n != 3 || !errors.Is(err, broken) {
					t.Errorf("got %d, %v", n, err)
				}
			}, newOnce(t, memstore.New()))
			record(handler, newRecorded("k", "")).check(t, http.StatusOK, start+"eee", false)
		})
	}
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// A Serialize needs nothing of the answer, and hands on the very writer it got.
func TestSerializeLeavesTheWriter(t *testing.T) {
	under := httptest.NewRecorder()
	var got http.ResponseWriter
	handler := wrap(t, httpmw.Config{}, func(w http.ResponseWriter, _ *http.Request) { got = w },
		newSerialize(t, memstore.New(), keyfuncs.Header(keyHeader)))
	handler.ServeHTTP(under, newRecorded("k", ""))
	if got != http.ResponseWriter(under) {
		t.Errorf("the handler got a %T", got)
	}
}
