package httpmw_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

const keyHeader = "Idempotency-Key"

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func newOnce(t testing.TB, store dedupe.Store, options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Once(store, keyfuncs.Anyone, keyfuncs.Header(keyHeader), options...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func newSerialize(t testing.TB, store dedupe.Store, key dedupe.KeyFunc, options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Serialize(store, "account", key, options...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// wrap puts guards with the configuration in front of handler.
func wrap(t testing.TB, config httpmw.Config, handler http.HandlerFunc, guards ...*dedupe.Guard) http.Handler {
	t.Helper()
	middleware, err := config.Middleware(guards...)
	if err != nil {
		t.Fatal(err)
	}
	return middleware.Wrap(handler)
}

// onceOver is handler behind a Once of its own.
func onceOver(t testing.TB, handler http.HandlerFunc) http.Handler {
	t.Helper()
	return wrap(t, httpmw.Config{}, handler, newOnce(t, memstore.New()))
}

// protocols are the ways to talk to a server that the tests go through.
var protocols = map[string]func(testing.TB, http.Handler) *httptest.Server{
	"HTTP/1.1": http1,
	"HTTP/2":   http2,
	"h2c":      h2c,
}

func http1(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func http2(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// h2c is HTTP/2 without TLS.
func h2c(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	var unencrypted http.Protocols
	unencrypted.SetUnencryptedHTTP2(true)
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.Protocols = &unencrypted
	server.EnableHTTP2 = true // which has no effect, but says what is spoken
	server.Start()
	server.Client().Transport.(*http.Transport).Protocols = &unencrypted
	t.Cleanup(server.Close)
	return server
}

// newPost returns a request to a server with a key and a small body.
func newPost(ctx context.Context, t testing.TB, url, key string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"to":7}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(keyHeader, key)
	return r
}

// reply is an answer as a client sees it, or why there is none.
type reply struct {
	status   int
	header   http.Header
	body     string
	trailer  http.Header
	replayed bool
	err      error
}

// send sends a request and reads the whole answer.
func send(server *httptest.Server, r *http.Request) reply {
	response, err := server.Client().Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return reply{
		status:   response.StatusCode,
		header:   response.Header,
		body:     string(body),
		trailer:  response.Trailer,
		replayed: response.Header.Get("Idempotent-Replayed") == "true",
		err:      err,
	}
}

// post sends a request with the key "k", which must be answered.
func post(t testing.TB, server *httptest.Server) reply {
	t.Helper()
	got := send(server, newPost(t.Context(), t, server.URL+"/pay", "k"))
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got
}

// record sends a request to a handler without a network.
func record(handler http.Handler, r *http.Request) reply {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	return reply{
		status:   recorder.Code,
		header:   recorder.Header(),
		body:     recorder.Body.String(),
		replayed: recorder.Header().Get("Idempotent-Replayed") == "true",
	}
}

// newRecorded returns a request for record.
func newRecorded(key, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader(body))
	if key != "" {
		r.Header.Set(keyHeader, key)
	}
	return r
}

// problem is the last part of an answer's problem type: the name of the outcome.
func (r reply) problem() string {
	_, slug, _ := strings.Cut(r.body, "PROBLEMS.md#")
	slug, _, _ = strings.Cut(slug, `"`)
	return slug
}

func (r reply) check(t testing.TB, status int, body string, replayed bool) {
	t.Helper()
	if r.err != nil || r.status != status || r.body != body || r.replayed != replayed {
		t.Errorf("got %d %.300q, replayed %t, error %v; want %d %.300q, replayed %t", r.status, r.body, r.replayed, r.err, status, body, replayed)
	}
}

func (r reply) checkRefused(t testing.TB, outcome dedupe.Outcome) {
	t.Helper()
	if r.err != nil || r.status != httpmw.Status(outcome) || r.problem() != outcome.String() {
		t.Errorf("got %d %.300q, error %v; want %v", r.status, r.body, r.err, outcome)
	}
}

// receive returns what comes over a channel, and fails the test if nothing does.
func receive[T any](t testing.TB, from <-chan T, what string) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
	return value
}
