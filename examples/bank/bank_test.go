package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

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

// open serves a bank on a Redis of its own.
func open(t *testing.T, c config) (url string, redis *miniredis.Miniredis) {
	t.Helper()
	redis = miniredis.NewMiniRedis()
	redis.ClockTTL(true)
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Close)
	c.redis = "redis://" + redis.Addr()
	b, err := openBank(t.Context(), c, namespace{name: "bank"}, log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b)
	t.Cleanup(func() {
		server.Close()
		if err := b.close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return server.URL, redis
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
