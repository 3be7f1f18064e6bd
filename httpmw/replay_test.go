package httpmw_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
)

var page = strings.Repeat("0123456789abcdef", 1000)

// kept are handlers whose answer is kept.
var kept = map[string]struct {
	handler   http.HandlerFunc
	firstOnly []string // names of the headers that only the first answer has
	method    string   // POST unless given
	contains  string   // a header line of every answer, unless empty
}{
	"empty handler": {handler: func(http.ResponseWriter, *http.Request) {}},
	"header without status": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/orders/1")
	}},
	"created": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/orders/1")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":1}`)
	}},
	"no content": {handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
	"not modified": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", `"1"`)
		w.WriteHeader(http.StatusNotModified)
	}},
	"body refused": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
		for _, text := range []string{"x", page + page + page} {
			if n, err := io.WriteString(w, text); n != 0 || err != http.ErrBodyNotAllowed {
				panic(err)
			}
		}
	}},
	"redirect":  {handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/orders/1", http.StatusSeeOther) }},
	"not found": {handler: http.NotFound},
	"not allowed": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", "GET, PUT")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}},
	"unprocessable": {handler: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnprocessableEntity) }},
	"unknown status": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(299)
		_, _ = io.WriteString(w, "odd")
	}},
	"headers": {
		handler: func(w http.ResponseWriter, _ *http.Request) {
			for _, name := range httpmw.DefaultKeepHeaders() {
				if name != "Content-Encoding" && name != "Content-Type" {
					w.Header().Set(name, "value of "+name)
				}
			}
			w.Header()["Link"] = []string{`</a>; rel="next", </b>; rel="last"`, "", "</c>"}
			w.Header()["Vary"] = []string{"Accept", "Origin"}
			w.Header().Set("Content-Type", `multipart/mixed; boundary="a,b"`)
			w.Header().Set("X-Balance", "7")
			w.Header().Add("Set-Cookie", "a=b")
			w.Header().Add("Set-Cookie", "c=d")
			w.Header().Set("Www-Authenticate", "Basic")
			_, _ = io.WriteString(w, "x")
		},
		firstOnly: []string{"Set-Cookie", "Www-Authenticate", "X-Balance"},
		contains:  "Content-Security-Policy: value of Content-Security-Policy",
	},
	"names in their own case": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["ETag"] = []string{`"1"`}
		w.Header()["LINK"] = []string{"</a>", "</b>, </c>"}
	}},
	"headers of a proxied answer": {firstOnly: []string{"Age"}, handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", "Mon, 02 Jan 2006 15:04:05 GMT")
		w.Header().Set("Age", "7")
		_, _ = io.WriteString(w, "cached")
	}},
	"no content type": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "<html>")
	}},
	"sniffed": {contains: "Content-Type: text/html; charset=utf-8", handler: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html><body>")
	}},
	"sniffed over small writes": {contains: "Content-Type: text/html; charset=utf-8", handler: func(w http.ResponseWriter, _ *http.Request) {
		for _, text := range []string{"<h", "tml><bo", "dy>", page} {
			_, _ = io.WriteString(w, text)
		}
	}},
	"sniffed from the first 512 bytes": {contains: "Content-Type: text/plain; charset=utf-8", handler: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, page[:512]+"\x00\x01")
	}},
	"encoded": {contains: "Content-Encoding: br", handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, "<html>")
	}},
	"binary": {handler: func(w http.ResponseWriter, _ *http.Request) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		_, _ = w.Write(all)
	}},
	"empty write": {handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil) }},
	"long":        {handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) }},
	"long, with its length": {contains: "Content-Length: 16000", handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "16000")
		_, _ = io.WriteString(w, page)
	}},
	"copied": {handler: func(w http.ResponseWriter, _ *http.Request) {
		if n, err := io.Copy(w, struct{ io.Reader }{strings.NewReader(page)}); n != 16000 || err != nil {
			panic(err)
		}
	}},
	"copied nothing": {handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, http.NoBody) }},
	"served": {contains: "Accept-Ranges: bytes", handler: func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "page.txt", time.Unix(1e9, 0), strings.NewReader(page))
	}},
	"served in part": {contains: "Content-Range: bytes 1-3/16000", handler: func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Range", "bytes=1-3")
		http.ServeContent(w, r, "page.txt", time.Time{}, strings.NewReader(page))
	}},
	"early hints": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Link", "</orders/1>")
		w.WriteHeader(http.StatusProcessing)
		w.WriteHeader(http.StatusCreated)
	}},
	"continue": {handler: func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusContinue)
		w.WriteHeader(http.StatusContinue)
		_, _ = io.Copy(w, r.Body)
	}},
	"late status and headers": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/orders/1")
		w.Header().Set("Etag", `"1"`)
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("Location", "/orders/2")
		w.Header().Del("Etag")
		w.Header().Set("Link", "</late>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "x")
	}},
	"head": {method: http.MethodHead, contains: "Content-Length: 16000", handler: func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "page.txt", time.Unix(1e9, 0), strings.NewReader(page))
	}},
	"head of a large answer": {method: http.MethodHead, contains: "Content-Length: 48000", handler: func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "page.txt", time.Unix(1e9, 0), strings.NewReader(page+page+page))
	}},
	"head, with a body": {method: http.MethodHead, handler: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, page)
	}},
	"get": {method: http.MethodGet, handler: func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "page.txt", time.Unix(1e9, 0), strings.NewReader(page))
	}},
	"options": {method: http.MethodOptions, handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", "OPTIONS, POST")
		w.WriteHeader(http.StatusNoContent)
	}},
	"method of its own": {method: "PURGE", handler: func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Method+" ")
		_, _ = io.Copy(w, r.Body)
	}},
	"method in lower case": {method: "get", handler: func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Method)
	}},
}

// The first answer is the handler's own, and a replay is the first one again: byte for byte and
// header line for header line.
func TestReplayIsTheFirstAnswer(t *testing.T) {
	for protocol, start := range protocols {
		for name, test := range kept {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				var runs atomic.Int32
				guarded := wrap(t, httpmw.Config{MaxAnswer: 1 << 15}, func(w http.ResponseWriter, r *http.Request) {
					runs.Add(1)
					test.handler(w, r)
				}, newOnce(t, memstore.New(), dedupe.WithSafeMethods()))
				method := test.method
				if method == "" {
					method = http.MethodPost
				}
				bare := transcribe(t, start(t, test.handler), method)
				server := start(t, guarded)
				first := transcribe(t, server, method)
				checkSame(t, "first answer", first, bare)
				repeat := transcribe(t, server, method)
				if runs.Load() != 1 || !repeat.has("Idempotent-Replayed: true") && !repeat.has("idempotent-replayed: true") {
					t.Errorf("%d runs; replay %q", runs.Load(), repeat.Lines)
				}
				checkSame(t, "replay", repeat.without("Idempotent-Replayed"), first.without(test.firstOnly...))
				if repeat.Interim != nil {
					t.Errorf("replay has interim answers %q", repeat.Interim)
				}
				if test.contains != "" && (!first.has(test.contains) || !repeat.has(test.contains)) {
					t.Errorf("%q is missing in %q or %q", test.contains, first.Lines, repeat.Lines)
				}
			})
		}
	}
}

func checkSame(t *testing.T, what string, got, want transcript) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %.999s\nwant %.999s", what, fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want))
	}
}

// What outer middleware puts into an answer is the current request's, replayed or not.
func TestOuterHeadersStayCurrent(t *testing.T) {
	var requests atomic.Int32
	inner := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Vary", "Accept")
		w.Header().Set("Cache-Control", "private") // as outside
		w.Header().Set("Content-Language", "de")   // other than outside
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "done")
	})
	server := http1(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := strconv.Itoa(int(requests.Add(1)))
		w.Header().Set("X-Request-Id", number)
		w.Header().Set("Vary", "Origin")
		w.Header().Set("Cache-Control", "private")
		w.Header().Set("Content-Language", "en")
		w.Header().Set("Etag", number)
		w.Header().Set("Link", "</"+number+">")
		inner.ServeHTTP(w, r)
	}))
	for _, number := range []string{"1", "2"} {
		got := post(t, server)
		got.check(t, http.StatusOK, "done", number == "2")
		want := http.Header{
			"X-Request-Id":     {number},
			"Vary":             {"Origin", "Accept"},
			"Cache-Control":    {"private"},
			"Content-Language": {"de"},
			"Etag":             {number},
			"Link":             nil,
		}
		for name, values := range want {
			if !equal(got.header.Values(name), values) {
				t.Errorf("answer %s has %s %q, want %q", number, name, got.header.Values(name), values)
			}
		}
	}
}

// A header that the handler set as outer middleware had it is left to outer middleware.
func TestOuterHeaderThatTheHandlerAgreesWith(t *testing.T) {
	inner := onceOver(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "private") })
	policy := "private"
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", policy)
		inner.ServeHTTP(w, r)
	})
	record(outer, newRecorded("k", ""))
	policy = "no-store"
	if got := record(outer, newRecorded("k", "")); !got.replayed || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("replay has %v", got.header)
	}
}

func TestKeepHeaders(t *testing.T) {
	handler := wrap(t, httpmw.Config{KeepHeaders: []string{"x-balance", "X-Balance", "ETag"}}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Balance", "7")
		w.Header().Set("X-Other", "8")
	}, newOnce(t, memstore.New()))
	record(handler, newRecorded("k", ""))
	got := record(handler, newRecorded("k", ""))
	if !got.replayed || !equal(got.header.Values("X-Balance"), []string{"7"}) || got.header.Get("X-Other") != "" {
		t.Errorf("replay has %v", got.header)
	}
}

func TestDefaultKeepHeadersIsACopy(t *testing.T) {
	httpmw.DefaultKeepHeaders()[0] = "Set-Cookie"
	if got := httpmw.DefaultKeepHeaders()[0]; got == "Set-Cookie" {
		t.Error("callers can change the default")
	}
}

// A writer that spoils the bytes of one replay does not spoil the next.
func TestReplaysAreIndependent(t *testing.T) {
	var bodies [3][]byte
	handler := onceOver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") })
	spoil := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(spoiler{w}, r)
	})
	for i := range bodies {
		bodies[i] = []byte(record(spoil, newRecorded("k", "")).body)
	}
	if !bytes.Equal(bodies[1], []byte("done")) || !bytes.Equal(bodies[2], []byte("done")) {
		t.Errorf("got %q", bodies)
	}
}

// spoiler writes over what it is given, which an io.Writer must not do.
type spoiler struct{ http.ResponseWriter }

func (s spoiler) Write(p []byte) (int, error) {
	n, err := s.ResponseWriter.Write(p)
	clear(p)
	return n, err
}
