package httpmw_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
)

// compressed is a middleware that compresses answers for clients that take that. It does to the headers
// what the common ones do.
func compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		c := &compressor{ResponseWriter: w, gzip: gzip.NewWriter(w)}
		next.ServeHTTP(c, r)
		c.close()
	})
}

type compressor struct {
	http.ResponseWriter

	gzip  *gzip.Writer
	begun bool
}

func (c *compressor) WriteHeader(status int) {
	if c.begun = true; status == http.StatusOK {
		c.Header().Set("Content-Encoding", "gzip")
		c.Header().Del("Content-Length")
		if tag := c.Header().Get("Etag"); tag != "" {
			c.Header().Set("Etag", "W/"+tag)
		}
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *compressor) Write(p []byte) (int, error) {
	if !c.begun {
		c.WriteHeader(http.StatusOK)
	}
	return c.gzip.Write(p)
}

func (c *compressor) close() {
	if c.begun {
		_ = c.gzip.Close()
	}
}

// tagged answers with a page of which it knows length and version.
func tagged(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", "16000")
	w.Header().Set("Etag", `"1"`)
	w.Header().Add("Vary", "Accept")
	write(w, page)
}

// requestEncoded sends a request by a client that decodes nothing by itself.
func requestEncoded(t *testing.T, handler http.Handler, encoding string) reply {
	t.Helper()
	r := newRecorded("k", "")
	r.Header.Set("Accept-Encoding", encoding)
	return record(handler, r)
}

func unzip(t *testing.T, text string) string {
	t.Helper()
	reader, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// What compresses outside the guard does so for each request as that one asks for it.
func TestCompressionOutside(t *testing.T) {
	for _, first := range []string{"gzip", "identity"} {
		t.Run(first, func(t *testing.T) {
			handler := compressed(onceOver(t, tagged))
			requestEncoded(t, handler, first)
			for range 2 {
				plain := requestEncoded(t, handler, "identity")
				plain.check(t, http.StatusOK, page, true)
				checkHeader(t, plain, http.Header{"Content-Encoding": nil, "Content-Length": {"16000"}, "Etag": {`"1"`}, "Vary": {"Accept-Encoding", "Accept"}})
				zipped := requestEncoded(t, handler, "gzip")
				if unzip(t, zipped.body) != page || !zipped.replayed {
					t.Errorf("got %.99q, replayed %t", zipped.body, zipped.replayed)
				}
				checkHeader(t, zipped, http.Header{"Content-Encoding": {"gzip"}, "Content-Length": nil, "Etag": {`W/"1"`}, "Vary": {"Accept-Encoding", "Accept"}})
			}
		})
	}
}

// What compresses inside it is a part of the answer, as is a handler that does so itself.
func TestCompressionInside(t *testing.T) {
	handlers := map[string]http.Handler{
		"middleware": compressed(http.HandlerFunc(tagged)),
		"handler": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header()["Vary"] = []string{"Accept-Encoding", "Accept"}
			w.Header().Set("Etag", `W/"1"`)
			zipped := gzip.NewWriter(w)
			write(zipped, page)
			_ = zipped.Close()
		}),
	}
	for name, inner := range handlers {
		for protocol, start := range protocols {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				server := start(t, wrap(t, httpmw.Config{}, inner.ServeHTTP, newOnce(t, memstore.New())))
				ask := func() reply {
					r := newPost(t.Context(), t, server.URL, "k")
					r.Header.Set("Accept-Encoding", "gzip") // so that the client does not decode it by itself
					return send(server, r)
				}
				first := ask()
				if first.err != nil || unzip(t, first.body) != page {
					t.Fatalf("got %.99q, %v", first.body, first.err)
				}
				repeat := ask()
				repeat.check(t, http.StatusOK, first.body, true)
				repeat.header.Del("Idempotent-Replayed")
				checkHeader(t, repeat, first.header)
				checkHeader(t, repeat, http.Header{"Content-Encoding": {"gzip"}, "Etag": {`W/"1"`}, "Vary": {"Accept-Encoding", "Accept"}})
			})
		}
	}
}

// Of what CORS and request-ID middleware outside sets, a replay has the current request's, and one line
// of each.
func TestCORSOutside(t *testing.T) {
	inner := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*") // which is not the handler's to say
		w.Header().Add("Vary", "Accept")
		write(w, "done")
	})
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.Header().Add("Access-Control-Expose-Headers", "Idempotent-Replayed")
		w.Header().Add("Vary", "Origin")
		w.Header().Add("X-Request-Id", r.Header.Get("X-Request-Id"))
		inner.ServeHTTP(w, r)
	})
	for _, id := range []string{"1", "2", "3"} {
		r := newRecorded("k", "")
		r.Header.Set("Origin", "https://"+id+".example")
		r.Header.Set("X-Request-Id", id)
		got := record(outer, r)
		got.check(t, http.StatusOK, "done", id != "1")
		origin := []string{"https://" + id + ".example"}
		if id == "1" {
			origin = []string{"*"}
		}
		checkHeader(t, got, http.Header{
			"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": {"Idempotent-Replayed"},
			"Vary": {"Origin", "Accept"}, "X-Request-Id": {id},
		})
	}
}

// checkHeader checks those headers that want has.
func checkHeader(t *testing.T, got reply, want http.Header) {
	t.Helper()
	for name, values := range want {
		if name != "Date" && !equal(got.header[name], values) {
			t.Errorf("%s is %q, want %q", name, got.header[name], values)
		}
	}
}
