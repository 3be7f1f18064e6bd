package redisstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// crowd is more calls at once than go out each on its own.
const crowd = 300

func claimOf(key int) dedupe.Claim {
	c := dedupe.Claim{Lease: time.Minute}
	c.Digest[0], c.Digest[1] = byte(key), byte(key>>8)
	_, _ = rand.Read(c.Token[:])
	return c
}

// together claims many keys at once and returns the errors.
func together(t *testing.T, store *redisstore.Store, ctx func(i int) context.Context) []error {
	t.Helper()
	errs := make([]error, crowd)
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() {
			found, err := store.Claim(ctx(i), claimOf(i))
			if err == nil && found.Status != dedupe.StatusGranted {
				err = errors.New(found.Status.String())
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errs
}

// TestCrowdSharesRoundTrips: three hundred calls at once are on fewer connections than the client would
// open for twenty.
func TestCrowdSharesRoundTrips(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true, PoolSize: 100})
	t.Cleanup(func() { _ = client.Close() })
	store := redisstore.New(client, redisstore.WithBudget(30*time.Second))
	if _, err := store.Claim(t.Context(), claimOf(crowd)); err != nil { // the script is there
		t.Fatal(err)
	}
	sent := server.ClientCommands()
	for i, err := range together(t, store, func(int) context.Context { return t.Context() }) {
		if err != nil {
			t.Fatalf("claim %d: %v", i, err)
		}
	}
	if n := server.ClientCommands() - sent; n < crowd {
		t.Errorf("%d commands for %d claims", n, crowd)
	}
	if n := client.PoolStats().TotalConns; n > 16 {
		t.Errorf("%d calls took %d connections", crowd, n)
	}
}

// TestCrowdKeepsEachCallsDeadline: who shares a round trip with others leaves in time all the same, and
// does not take them along.
func TestCrowdKeepsEachCallsDeadline(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := redisstore.New(server.Client(), redisstore.WithBudget(30*time.Second))
	if _, err := store.Claim(t.Context(), claimOf(crowd)); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	go func() { <-short.Done(); server.Resume() }()
	errs := together(t, store, func(i int) context.Context {
		if i%2 == 0 {
			return short
		}
		return t.Context()
	})
	for i, err := range errs {
		if i%2 == 1 && err != nil {
			t.Errorf("claim %d, which had time: %v", i, err)
		}
		if i%2 == 0 && err != nil && !errors.Is(err, dedupe.ErrStoreUnavailable) {
			t.Errorf("claim %d: %v", i, err)
		}
	}
}

// TestCrowdOfOddReplies: what one call is told says nothing to the others in its round trip.
func TestCrowdOfOddReplies(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client()
	store := redisstore.New(client, redisstore.WithBudget(30*time.Second))
	for i := 0; i < crowd; i += 10 {
		if err := client.Set(t.Context(), store.Key(claimOf(i).Digest), "foreign", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.ScriptFlush(t.Context()).Err(); err != nil { // each is sent the script
		t.Fatal(err)
	}
	for i, err := range together(t, store, func(int) context.Context { return t.Context() }) {
		if foreign := i%10 == 0; errors.Is(err, dedupe.ErrRecordUnreadable) != foreign || !foreign && err != nil {
			t.Errorf("claim %d: %v", i, err)
		}
	}
}

// TestCrowdThatLeavesIsNotSent: a claim whose caller gave up before it was sent is not sent afterwards,
// when it would hold its key for a lease with nobody behind it.
func TestCrowdThatLeavesIsNotSent(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client()
	store := redisstore.New(client, redisstore.WithBudget(30*time.Second))
	if _, err := store.Claim(t.Context(), claimOf(0)); err != nil { // the script is there
		t.Fatal(err)
	}
	const callers = 3 * redisstore.Sendable
	server.Pause()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			if _, err := store.Claim(short, claimOf(i+1)); !errors.Is(err, dedupe.ErrStoreUnavailable) {
				t.Errorf("claim %d: %v", i, err)
			}
		})
	}
	all.Wait()
	server.Resume()
	redistest.Eventually(t, time.Minute, func() bool { return redisstore.Quiet(store) }, "calls are still under way")
	if n := client.DBSize(t.Context()).Val(); n > redisstore.Sendable+1 {
		t.Errorf("%d of %d claims took effect, though only %d had been sent when their callers left", n, callers, redisstore.Sendable)
	}
}
