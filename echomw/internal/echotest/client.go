package echotest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/keyfuncs"
)

const (
	keyHeader = "Idempotency-Key"
	replayed  = "Idempotent-Replayed"

	// patience is how long a test waits for what must happen.
	patience = 20 * time.Second
)

// Once returns a Once on a store of its own, which all callers share.
func Once(t testing.TB, options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, keyfuncs.Header(keyHeader), options...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// Account returns a Serialize on the route's parameter, with a store of its own.
func Account(t testing.TB, options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Serialize(memstore.New(), "account", keyfuncs.Param("id"), options...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// Server is an application behind a real server.
type Server struct {
	*httptest.Server

	// Runs counts how often the handler has run.
	Runs atomic.Int32
}

// start starts the application.
func (v Version[M]) start(t *testing.T, app App[M]) *Server {
	t.Helper()
	server := &Server{}
	handler := app.Handler
	app.Handler = func(c Context) error {
		server.Runs.Add(1)
		return handler(c)
	}
	server.Server = Start(t, v.Serve(app))
	return server
}

// Start starts a server that keeps its log to itself, and whose client does not compress.
func Start(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	if transport, ok := server.Client().Transport.(*http.Transport); ok {
		transport.DisableCompression = true
	}
	return server
}

// Reply is an answer as the client has it.
type Reply struct {
	Status   int
	Header   http.Header
	Body     string
	Replayed bool
}

// A change makes a request of a test's own out of the usual one.
type change func(*http.Request)

func withHeader(name, value string) change {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func withPath(path string) change {
	return func(r *http.Request) { r.URL = r.URL.JoinPath("../../..").JoinPath(path) }
}

// withBody sends another body: its length is announced, or not.
func withBody(body string, announced bool) change {
	return func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		r.GetBody = nil
		if !announced {
			r.ContentLength = -1
		}
	}
}

// Post sends a withdrawal from account 7 with the key and returns the answer.
func Post(t testing.TB, server *httptest.Server, key string, changes ...change) Reply {
	t.Helper()
	reply, err := Send(t, server, key, changes...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// Send is Post for answers that may not arrive.
func Send(t testing.TB, server *httptest.Server, key string, changes ...change) (Reply, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/accounts/7/withdraw", strings.NewReader(`{"amount":10}`))
	if err != nil {
		return Reply{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set(keyHeader, key)
	}
	for _, change := range changes {
		change(r)
	}
	response, err := server.Client().Do(r)
	if err != nil {
		return Reply{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return Reply{response.StatusCode, response.Header, string(body), response.Header.Get(replayed) == "true"}, err
}

// PostLater is Post in the background.
func PostLater(t testing.TB, server *httptest.Server, key string, changes ...change) <-chan Reply {
	t.Helper()
	replies := make(chan Reply, 1)
	go func() {
		reply, err := Send(t, server, key, changes...)
		if err != nil {
			t.Error(err)
		}
		replies <- reply
	}()
	return replies
}

// expect compares status, body and whether the answer is a replay.
func (r Reply) expect(t testing.TB, status int, body string, replay bool) {
	t.Helper()
	if r.Status != status || trimmed(r.Body) != body || r.Replayed != replay {
		t.Errorf("got %d %q, replayed %t; want %d %q, replayed %t", r.Status, r.Body, r.Replayed, status, body, replay)
	}
}

// expectRuns compares how often the handler has run.
func (s *Server) expectRuns(t testing.TB, runs int32) {
	t.Helper()
	if got := s.Runs.Load(); got != runs {
		t.Errorf("the handler ran %d times; want %d", got, runs)
	}
}

// await waits for what must happen.
func await[T any](t testing.TB, what string, c <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-c:
	case <-time.After(patience):
		t.Fatalf("%s did not happen within %v", what, patience)
	}
	return value
}

// trimmed is a body without the line end that some encoders add.
func trimmed(body string) string { return strings.TrimSuffix(body, "\n") }
