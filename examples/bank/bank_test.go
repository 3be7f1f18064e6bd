package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// asBank makes the test binary behave as the bank, for tests that need processes.
const asBank = "INTERLOCK_TEST_AS_BANK"

func TestMain(m *testing.M) {
	if os.Getenv(asBank) != "" {
		main()
	}
	os.Exit(m.Run())
}

// patience bounds what must happen sooner or later. It is only used up by a test that fails.
const patience = 30 * time.Second

func quick() config {
	return config{lease: 30 * time.Second, wait: 10 * time.Second, retain: time.Hour}
}

// served is a bank on a Redis of its own, as its clients see it.
type served struct {
	http, echo string // URLs
	grpc       *grpc.ClientConn
	redis      *miniredis.Miniredis
}

// open serves a bank by all three frameworks until the test ends.
func open(t *testing.T, c config) *served {
	t.Helper()
	s := &served{redis: miniredis.NewMiniRedis()}
	s.redis.ClockTTL(true)
	if err := s.redis.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.redis.Close)
	c.redis = "redis://" + s.redis.Addr()
	c.http, c.echo, c.grpc = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	b, err := openBank(t.Context(), c, namespace{name: "bank"}, log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.serve(ctx, l) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections() // one that was not used would hold up its server
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	s.http, s.echo, s.grpc = "http://"+l.http.Addr().String(), "http://"+l.echo.Addr().String(), dial(t, l.grpc.Addr().String())
	return s
}

// overHTTP runs a test of the JSON API by each of its frameworks, each time on another bank.
func overHTTP(t *testing.T, c config, test func(t *testing.T, url string, redis *miniredis.Miniredis)) {
	t.Helper()
	t.Run("nethttp", func(t *testing.T) {
		s := open(t, c)
		test(t, s.http, s.redis)
	})
	t.Run("echo", func(t *testing.T) {
		s := open(t, c)
		test(t, s.echo, s.redis)
	})
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// addresses is what the line "listening" tells.
type addresses struct{ http, echo, grpc string }

var listening = regexp.MustCompile(`^listening http=(\S+)(?: echo=(\S+))?(?: grpc=(\S+))?$`)

func parseListening(line string) (a addresses, found bool) {
	if m := listening.FindStringSubmatch(line); m != nil {
		return addresses{m[1], m[2], m[3]}, true
	}
	return a, false
}

// reply is an answer as a test looks at it.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

// send sends a request whose headers are given as name, value, name, value.
func send(ctx context.Context, method, url, body string, headers ...string) reply {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, strings.TrimSpace(string(text)), err}
}

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

func wantAccount(t *testing.T, url, id, want string) {
	t.Helper()
	if r := send(t.Context(), "GET", url+"/accounts/"+id, ""); r.err != nil || r.status != 200 || r.body != want {
		t.Errorf("account %s: %d %s %v; want %s", id, r.status, r.body, r.err, want)
	}
}

// wantProblem checks an answer against RFC 9457 and returns what it says.
func wantProblem(t *testing.T, r reply, status int, name string) (p struct {
	Type      string
	Title     string
	Status    int
	Detail    string
	Retryable bool
},
) {
	t.Helper()
	if r.err != nil {
		t.Fatal(r.err)
	}
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	if r.status != status || p.Status != status || !strings.HasSuffix(p.Type, "#"+name) || p.Title == "" {
		t.Errorf("%d %s; want %d and the type %s", r.status, r.body, status, name)
	}
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type: %s", got)
	}
	if got := r.header.Get("Retry-After"); p.Retryable != (got != "") {
		t.Errorf("retryable: %t, but Retry-After: %q", p.Retryable, got)
	}
	return p
}

func eventually(t *testing.T, what string, ready func() bool) {
	t.Helper()
	redistest.Eventually(t, patience, ready, what)
}

// releaseGuards takes all keys away from those that hold them.
func releaseGuards(redis *miniredis.Miniredis) {
	for _, key := range guardKeys(redis) {
		redis.Del(key)
	}
}

// guardKeys returns the keys in redis that somebody holds, or that have an answer.
func guardKeys(redis *miniredis.Miniredis) (keys []string) {
	for _, key := range redis.Keys() {
		if strings.HasPrefix(key, "bank:guards:") {
			keys = append(keys, key)
		}
	}
	return keys
}
