package httpmw_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// trackedBody tells what is done with a request's body.
type trackedBody struct {
	io.Reader
	read   int
	closed bool
}

func (b *trackedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *trackedBody) Close() error { b.closed = true; return nil }

func newTracked(text string) *trackedBody { return &trackedBody{Reader: strings.NewReader(text)} }

// withBody is a request with a key whose length is not known beforehand.
func withBody(body io.ReadCloser) *http.Request {
	r := newRecorded("k", "")
	r.Body, r.ContentLength = body, -1
	return r
}

// echo answers with the body that the handler reads.
func echo(w http.ResponseWriter, r *http.Request) {
	_, err := io.Copy(w, r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		_, _ = io.WriteString(w, ": "+err.Error())
	}
}

// The handler reads the same bytes as without the guard, whoever read them before.
func TestBodyIsReadAgain(t *testing.T) {
	field := keyfuncs.Field("to")
	guards := map[string][]*dedupe.Guard{
		"fingerprint":   {newOnce(t, memstore.New())},
		"key":           {newSerialize(t, memstore.New(), field)},
		"both":          {newOnce(t, memstore.New()), newSerialize(t, memstore.New(), field, dedupe.WithAlso(keyfuncs.Field("from")))},
		"payload":       {newSerialize(t, memstore.New(), keyfuncs.PayloadHash)},
		"skip function": {newSerialize(t, memstore.New(), field, dedupe.WithSkip(func(r dedupe.Request) bool { _, err := r.Payload(); return err == nil }))},
	}
	for name, guards := range guards {
		for _, text := range []string{`{"to":7,"from":8,"x":"é"}`, fmt.Sprintf(`{"to":7,"from":8,"long":%q}`, page)} {
			t.Run(fmt.Sprint(name, len(text)), func(t *testing.T) {
				body := newTracked(text)
				r := withBody(body)
				r.Header.Set(keyHeader, fmt.Sprint(len(text)))
				record(wrap(t, httpmw.Config{}, echo, guards...), r).check(t, http.StatusOK, text, false)
				if !body.closed {
					t.Error("Close does not reach the body")
				}
			})
		}
	}
}

// A guard that needs no body leaves it alone.
func TestUnreadBodyIsUntouched(t *testing.T) {
	body := newTracked("not even JSON")
	handler := wrap(t, httpmw.Config{MaxBody: 1}, func(_ http.ResponseWriter, r *http.Request) {
		if r.Body != io.ReadCloser(body) || body.read != 0 {
			t.Errorf("the handler got a %T of which %d bytes were read", r.Body, body.read)
		}
	}, newSerialize(t, memstore.New(), keyfuncs.Header(keyHeader)))
	record(handler, withBody(body)).check(t, http.StatusOK, "", false)
}

func TestNoBody(t *testing.T) {
	for name, body := range map[string]io.ReadCloser{"nil": nil, "NoBody": http.NoBody} {
		t.Run(name, func(t *testing.T) {
			r := newRecorded("k", "")
			r.Body = body
			handler := onceOver(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.Body != body {
					t.Errorf("the handler got %v", r.Body)
				}
			})
			record(handler, r).check(t, http.StatusOK, "", false)
		})
	}
}

func TestBodyLimit(t *testing.T) {
	for size, refused := range map[int]bool{9: false, 10: false, 11: true, 100_000: true} {
		for _, announced := range []bool{true, false} {
			t.Run(fmt.Sprint(size, announced), func(t *testing.T) {
				body := newTracked(strings.Repeat("1", size))
				r := withBody(body)
				if announced {
					r.ContentLength = int64(size)
				}
				got := record(wrap(t, httpmw.Config{MaxBody: 10}, echo, newOnce(t, memstore.New())), r)
				if !refused {
					got.check(t, http.StatusOK, strings.Repeat("1", size), false)
					return
				}
				got.checkRefused(t, dedupe.PayloadTooLarge)
				if announced && body.read > 0 || body.read > 11 {
					t.Errorf("%d bytes were read", body.read)
				}
			})
		}
	}
}

func TestBodyLimitOverTheWire(t *testing.T) {
	for protocol, start := range protocols {
		t.Run(protocol, func(t *testing.T) {
			server := start(t, wrap(t, httpmw.Config{MaxBody: 10}, echo, newOnce(t, memstore.New())))
			for size, refused := range map[int]bool{10: false, 11: true} {
				r := newPost(t.Context(), t, server.URL, fmt.Sprint("k", size))
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(page[:size])), -1 // chunked
				got := send(server, r)
				if refused {
					got.checkRefused(t, dedupe.PayloadTooLarge)
				} else {
					got.check(t, http.StatusOK, page[:size], false)
				}
			}
		})
	}
}

// A smaller limit that a middleware outside has set counts as well.
func TestMaxBytesReaderOutside(t *testing.T) {
	handler := http.MaxBytesHandler(onceOver(t, echo), 10)
	record(handler, withBody(newTracked(page[:10]))).check(t, http.StatusOK, page[:10], false)
	record(handler, withBody(newTracked(page[:11]))).checkRefused(t, dedupe.PayloadTooLarge)
}

// A client that asks before it sends too large a body is told not to.
func TestExpectContinue(t *testing.T) {
	server := http1(t, wrap(t, httpmw.Config{MaxBody: 10}, echo, newOnce(t, memstore.New())))
	ask := func(length int, body string) string {
		return string(exchange(t, server, fmt.Sprintf("POST / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n%s: k\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n%s", keyHeader, length, body)))
	}
	if got := ask(11, ""); !strings.HasPrefix(got, "HTTP/1.1 413 ") {
		t.Errorf("got %q", got)
	}
	if got := ask(10, page[:10]); !strings.HasPrefix(got, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ") || !strings.HasSuffix(got, page[:10]) {
		t.Errorf("got %q", got)
	}
}

func TestBrokenBody(t *testing.T) {
	body := &trackedBody{Reader: io.MultiReader(strings.NewReader("{"), failingReader{errors.New(secretAddress)})}
	got := record(onceOver(t, echo), withBody(body))
	got.checkRefused(t, dedupe.KeyInvalid)
	if !strings.Contains(got.body, `"detail":"body could not be read"`) || strings.Contains(got.body, "10.9.8.7") {
		t.Errorf("got %s", got.body)
	}
}

// A client that breaks off its body has sent no request, and its key is not used up.
func TestHalfABody(t *testing.T) {
	server := http1(t, onceOver(t, echo))
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(patience))
	_, err = io.WriteString(connection, "POST /pay HTTP/1.1\r\nHost: test\r\nIdempotency-Key: k\r\nContent-Length: 100\r\n\r\nhalf")
	if err := errors.Join(err, connection.(*net.TCPConn).CloseWrite()); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(connection); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
		t.Errorf("got %q, %v", got, err)
	}
	post(t, server).check(t, http.StatusOK, `{"to":7}`, false)
}

// A key function may get by without a body that cannot be read. The handler must not, then, take an
// empty body for what the client sent.
func TestBodyOfAnIndulgentKeyFunction(t *testing.T) {
	indulgent := func(r dedupe.Request) (string, error) {
		if key, err := r.Field("to"); err == nil && key != "" {
			return key, nil
		}
		return "any", nil
	}
	long := strings.Repeat("1", 100)
	for name, test := range map[string]struct {
		body  io.Reader
		known int64
		want  string
	}{
		"chunked":   {strings.NewReader(long), -1, long},
		"announced": {strings.NewReader(long), 100, long},
		"broken":    {io.MultiReader(strings.NewReader("half"), failingReader{errors.New("broken")}), -1, "half: broken"},
		"not JSON":  {strings.NewReader("to=7"), -1, "to=7"},
	} {
		t.Run(name, func(t *testing.T) {
			body := &trackedBody{Reader: test.body}
			r := withBody(body)
			r.ContentLength = test.known
			handler := wrap(t, httpmw.Config{MaxBody: 10}, echo, newSerialize(t, memstore.New(), indulgent))
			record(handler, r).check(t, http.StatusOK, test.want, false)
			if !body.closed {
				t.Error("Close does not reach the body")
			}
		})
	}
}

// A repeat must bring everything unchanged that makes it the same request.
func TestFingerprint(t *testing.T) {
	type sent struct{ method, target, contentType, body string }
	first := sent{http.MethodPost, "/pay/1%2F2?a=1", "application/json", `{"to":7}`}
	guard := newOnce(t, memstore.New(), dedupe.WithOperation("pay"))
	handler := wrap(t, httpmw.Config{}, echo, guard)
	do := func(s sent) reply {
		r := httptest.NewRequest(s.method, s.target, strings.NewReader(s.body))
		r.Header.Set(keyHeader, "k")
		if s.contentType != "" {
			r.Header.Set("Content-Type", s.contentType)
		}
		return record(handler, r)
	}
	do(first).check(t, http.StatusOK, first.body, false)
	do(first).check(t, http.StatusOK, first.body, true)
	for name, other := range map[string]sent{
		"method":          {http.MethodPut, first.target, first.contentType, first.body},
		"path":            {first.method, "/pay/2?a=1", first.contentType, first.body},
		"escaped path":    {first.method, "/pay/1/2?a=1", first.contentType, first.body},
		"query":           {first.method, "/pay/1%2F2?a=2", first.contentType, first.body},
		"no query":        {first.method, "/pay/1%2F2", first.contentType, first.body},
		"content type":    {first.method, first.target, "text/plain", first.body},
		"no content type": {first.method, first.target, "", first.body},
		"body":            {first.method, first.target, first.contentType, `{"to": 7}`},
		"no body":         {first.method, first.target, first.contentType, ""},
		"moved boundary":  {first.method, first.target, first.contentType + "{", `"to":7}`},
	} {
		t.Run(name, func(t *testing.T) { do(other).checkRefused(t, dedupe.KeyReused) })
	}
	do(first).check(t, http.StatusOK, first.body, true)
}

// Trailers that come after a request's body are there when the body was read by the guard.
func TestRequestTrailers(t *testing.T) {
	server := http1(t, onceOver(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		write(w, r.Trailer.Get("X-Sum"))
	}))
	raw := exchange(t, server, "POST / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nIdempotency-Key: k\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: 42\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(raw))), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); string(body) != "42" {
		t.Errorf("got %s %q", response.Status, body)
	}
}

// net/http removes the files of an upload when the request is over. It knows of them by its own request,
// not by the copy that the handler gets.
func TestUploadedFilesAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	handler := wrap(t, httpmw.Config{}, func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(0); err != nil {
			t.Error(err)
		}
		if files, _ := os.ReadDir(os.TempDir()); len(files) != 1 {
			t.Errorf("%d files during the request", len(files))
		}
	}, newSerialize(t, memstore.New(), keyfuncs.Const("k")))
	server := http1(t, handler)
	body := &bytes.Buffer{}
	form := multipart.NewWriter(body)
	part, err := form.CreateFormFile("file", "name")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write(bytes.Repeat([]byte("x"), 100))
	_ = form.Close()
	response, err := server.Client().Post(server.URL, form.FormDataContentType(), body)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	server.Close() // waits for the request to be over
	if files, _ := os.ReadDir(os.TempDir()); len(files) != 0 {
		t.Errorf("%d files are left", len(files))
	}
}
