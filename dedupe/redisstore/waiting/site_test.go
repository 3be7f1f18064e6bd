package waiting

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

const (
	// patience bounds what must happen sooner or later. Only a test that fails uses it up.
	patience = 25 * time.Second

	// long is a lease that does not end while a test runs, short one that is soon over.
	long  = 30 * time.Second
	short = 2 * time.Second

	// wait is longer than a test.
	wait = time.Minute

	// grantLease is how long a grant lasts that the grantee has not extended, in line.lua, and slack
	// what a busy machine may add to it.
	grantLease = 2 * time.Second
	slack      = 8 * time.Second
)

// site is where a test has its records: on one server or in a cluster, under a prefix of its own.
type site struct {
	Addrs    []string
	Cluster  bool
	Prefix   string
	Username string
}

// newPrefix returns one that no other test has.
func newPrefix() string { return "test-" + rand.Text() + ":" }

func siteOf(server *redistest.Server) site {
	return site{Addrs: []string{server.Addr()}, Prefix: newPrefix()}
}

// through returns the same site, reached through a proxy.
func (s site) through(proxy *redistest.Proxy) site {
	s.Addrs = []string{proxy.Addr()}
	return s
}

// client returns one with stock options.
func (s site) client(ear *ear) redis.UniversalClient {
	password := ""
	if s.Username != "" {
		password = "password"
	}
	if s.Cluster {
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: s.Addrs, Username: s.Username, Password: password, Dialer: ear.dialer(),
		})
	}
	return redis.NewClient(&redis.Options{
		Addr: s.Addrs[0], Username: s.Username, Password: password, Dialer: ear.dialer(),
	})
}

// store returns one with a client of its own, as a process has it.
func (s site) store(ear *ear) *redisstore.Store {
	return redisstore.New(s.client(ear), redisstore.WithPrefix(s.Prefix), redisstore.WithBudget(budget))
}

// budget is for a loaded machine.
const budget = 5 * time.Second

// member returns a share in the line in this process, as another process has it.
func (s site) member(t *testing.T, lease time.Duration) member {
	t.Helper()
	client := s.client(nil)
	return s.memberWith(t, client, lease)
}

func (s site) memberWith(t *testing.T, client redis.UniversalClient, lease time.Duration) member {
	t.Helper()
	store := redisstore.New(client, redisstore.WithPrefix(s.Prefix), redisstore.WithBudget(budget))
	t.Cleanup(func() {
		_ = store.Close()
		_ = client.Close()
	})
	return member{store, lease}
}

// deaf returns a member whose subscription does as ear says.
func (s site) deaf(t *testing.T, ear *ear, lease time.Duration) member {
	t.Helper()
	return s.memberWith(t, s.client(ear), lease)
}

// child returns another process.
func (s site) child(t *testing.T, lease time.Duration) *child {
	t.Helper()
	return startChild(t, s, int64(lease))
}

// watch is how a test looks at its records, by the way.
type watch struct {
	site
	client redis.UniversalClient
}

func (s site) watch(t *testing.T) watch {
	t.Helper()
	s.Username = ""
	client := s.client(nil)
	t.Cleanup(func() { _ = client.Close() })
	return watch{s, client}
}

// each calls look for every server.
func (w watch) each(t *testing.T, look func(ctx context.Context, node *redis.Client) error) {
	t.Helper()
	switch client := w.client.(type) {
	case *redis.ClusterClient:
		succeed(t, client.ForEachMaster(t.Context(), look))
	case *redis.Client:
		succeed(t, look(t.Context(), client))
	}
}

// keys returns those of all records.
func (w watch) keys(t *testing.T) (keys []string) {
	t.Helper()
	var mu sync.Mutex
	w.each(t, func(ctx context.Context, node *redis.Client) error {
		found, err := node.Keys(ctx, w.Prefix+"*").Result()
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, found...)
		return err
	})
	return keys
}

// channels returns those that somebody listens to.
func (w watch) channels(t *testing.T) (channels []string) {
	t.Helper()
	var mu sync.Mutex
	w.each(t, func(ctx context.Context, node *redis.Client) error {
		list := node.PubSubChannels
		if w.Cluster {
			list = node.PubSubShardChannels
		}
		found, err := list(ctx, w.Prefix+"*").Result()
		mu.Lock()
		defer mu.Unlock()
		channels = append(channels, found...)
		return err
	})
	return channels
}

func (w watch) awaitChannels(t *testing.T, n int) {
	t.Helper()
	redistest.Eventually(t, patience, func() bool { return len(w.channels(t)) == n },
		"there are not "+strconv.Itoa(n)+" channels listened to")
}

// record is the one record of a test, without fields when it is not there.
type record struct {
	key    string
	fields map[string]string
	ttl    time.Duration
}

func (w watch) record(t *testing.T) record {
	t.Helper()
	keys := w.keys(t)
	if len(keys) == 0 {
		return record{}
	}
	r := record{key: keys[0]}
	var err error
	r.fields, err = w.client.HGetAll(t.Context(), r.key).Result()
	succeed(t, err)
	r.ttl, err = w.client.PTTL(t.Context(), r.key).Result()
	succeed(t, err)
	return r
}

// owner returns the owner's token.
func (r record) owner() string { return r.fields["t"] }

const placeSize = 33

// line returns the tokens of those in the line.
func (r record) line() (tokens []string) {
	for q := r.fields["q"]; len(q) >= placeSize; q = q[placeSize:] {
		tokens = append(tokens, q[:16])
	}
	return tokens
}

// awaitLine returns the tokens in the line when there are n.
func (w watch) awaitLine(t *testing.T, n int) (tokens []string) {
	t.Helper()
	var last record
	defer func() {
		if t.Failed() {
			t.Logf("the record is %q, for %v", last.fields, last.ttl)
		}
	}()
	redistest.Eventually(t, patience, func() bool {
		last = w.record(t)
		tokens = last.line()
		return len(tokens) == n
	}, "there are not "+strconv.Itoa(n)+" places in the line")
	return tokens
}

// awaitFree returns when no record is left.
func (w watch) awaitFree(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, patience, func() bool { return len(w.keys(t)) == 0 }, "a record is left in Redis")
}

// lineUp has processes wait for a key, in their order.
func (w watch) lineUp(t *testing.T, r request, processes ...process) []*attempt {
	t.Helper()
	already := len(w.record(t).line())
	attempts := make([]*attempt, len(processes))
	for i, p := range processes {
		attempts[i] = p.begin(r)
		w.awaitLine(t, already+i+1)
	}
	return attempts
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
