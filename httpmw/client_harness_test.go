package httpmw_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
)

// arrivals notes what reaches a server.
type arrivals struct {
	next http.Handler

	mu   sync.Mutex
	seen []arrival
}

type arrival struct {
	method, path, body string
	keys               []string
	at                 time.Time
}

func (a *arrivals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.seen = append(a.seen, arrival{r.Method, r.URL.Path, string(body), r.Header.Values(keyHeader), time.Now()})
	a.mu.Unlock()
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	a.next.ServeHTTP(w, r)
}

// all returns n arrivals, which must be all there are.
func (a *arrivals) all(t testing.TB, n int) []arrival {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen) != n {
		t.Fatalf("%d requests arrived: %+v; want %d", len(a.seen), a.seen, n)
	}
	return a.seen
}

// oneKey returns the key that each of n arrivals has.
func (a *arrivals) oneKey(t testing.TB, n int) string {
	t.Helper()
	all := a.all(t, n)
	for _, one := range all {
		if len(one.keys) != 1 || one.keys[0] != all[0].keys[0] {
			t.Fatalf("keys %q and %q; want the same one", all[0].keys, one.keys)
		}
	}
	return all[0].keys[0]
}

// newClient returns a client with a transport of ours.
func newClient(t testing.TB, config httpmw.ClientConfig, base http.RoundTripper) *http.Client {
	t.Helper()
	transport, err := config.Transport(base)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: transport}
}

// newCall returns a POST without a key.
func newCall(ctx context.Context, t testing.TB, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"to":7}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// do sends a request and reads the whole answer.
func do(client *http.Client, r *http.Request) reply {
	response, err := client.Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return reply{
		status: response.StatusCode, header: response.Header, body: string(body),
		replayed: httpmw.Replayed(response), err: err,
	}
}

// pipes serves handler over pipes: in a bubble of synctest, time passes as soon as client and server
// both wait.
func pipes(t testing.TB, handler http.Handler) *http.Transport {
	t.Helper()
	listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Hour}
	go func() { _ = server.Serve(listener) }()
	base := &http.Transport{DialContext: listener.dial}
	t.Cleanup(func() {
		base.CloseIdleConnections()
		_ = server.Close()
	})
	return base
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// inTurn answers with one handler after the other, and then again with the last.
func inTurn(handlers ...http.HandlerFunc) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		handler := handlers[0]
		if len(handlers) > 1 {
			handlers = handlers[1:]
		}
		mu.Unlock()
		handler(w, r)
	})
}

// refuse turns a request away as a guard would.
func refuse(outcome dedupe.Outcome, after time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		httpmw.WriteProblem(w, r, &dedupe.Refusal{Outcome: outcome, RetryAfter: after})
	}
}

func done(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") }

// baseFunc is a base that is a function.
type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
