package rules

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// checkTTLs checks that there is a key, and that none stays for longer than limit.
func (r *rig) checkTTLs(t *testing.T, limit time.Duration) {
	t.Helper()
	keys, err := r.direct.Keys(t.Context(), "*").Result()
	succeed(t, err)
	if len(keys) == 0 {
		t.Fatal("there is no key")
	}
	for _, key := range keys {
		ttl, err := r.direct.PTTL(t.Context(), key).Result()
		succeed(t, err)
		if ttl == -2 {
			continue // it expired since
		}
		if ttl <= 0 || ttl > limit {
			t.Errorf("%s has a TTL of %v, want one up to %v", key, ttl, limit)
		}
	}
}

// TestR4EveryKeyExpires goes along each path that leaves a key, checks its TTL, and waits until Redis
// is empty without anybody's help.
func TestR4EveryKeyExpires(t *testing.T) {
	t.Parallel()
	const lease, lapse, retention = 300 * time.Millisecond, 600 * time.Millisecond, time.Second
	lapsing := func(t *testing.T, o owner) {
		t.Helper()
		_, err := o.store.Claim(t.Context(), dedupe.Claim{Holder: o.holder, Lease: lease, Lapse: lapse})
		succeed(t, err)
	}
	tests := map[string]struct {
		limit time.Duration
		path  func(t *testing.T, r *rig, o owner)
	}{
		"claimed": {lease, func(t *testing.T, _ *rig, o owner) { o.grant(t, lease) }},
		"claimed with a lapse": {lease + lapse, func(t *testing.T, _ *rig, o owner) {
			lapsing(t, o)
		}},
		"claimed twice": {lease, func(t *testing.T, _ *rig, o owner) { o.grant(t, lease); o.grant(t, lease) }},
		"refused to a rival": {lease, func(t *testing.T, _ *rig, o owner) {
			o.grant(t, lease)
			_, err := o.rival().claim(t.Context(), long)
			succeed(t, err)
		}},
		"extended": {lease, func(t *testing.T, _ *rig, o owner) {
			o.grant(t, long)
			succeed(t, o.extend(t.Context(), lease))
		}},
		"extended with a lapse": {lease + lapse, func(t *testing.T, _ *rig, o owner) {
			lapsing(t, o)
			succeed(t, o.extend(t.Context(), lease))
		}},
		"completed": {retention, func(t *testing.T, _ *rig, o owner) {
			o.grant(t, long)
			succeed(t, o.complete(t.Context(), []byte("answer"), retention))
		}},
		"completed twice": {retention, func(t *testing.T, _ *rig, o owner) {
			o.grant(t, long)
			succeed(t, o.complete(t.Context(), []byte("answer"), retention))
			succeed(t, o.complete(t.Context(), []byte("answer"), retention))
		}},
		"left a tombstone": {retention, func(t *testing.T, _ *rig, o owner) {
			o.grant(t, long)
			succeed(t, o.complete(t.Context(), nil, retention))
		}},
		"replayed": {retention, func(t *testing.T, _ *rig, o owner) {
			o.grant(t, long)
			succeed(t, o.complete(t.Context(), []byte("answer"), retention))
			_, err := o.rival().claim(t.Context(), long)
			succeed(t, err)
		}},
		"lapsed": {lapse, func(t *testing.T, _ *rig, o owner) {
			lapsing(t, o)
			redistest.Eventually(t, patience, func() bool {
				claimed, err := o.rival().claim(t.Context(), long)
				return err == nil && claimed.Status == dedupe.StatusLapsed
			}, "the claim did not lapse")
		}},
		"taken over": {lease, func(t *testing.T, r *rig, o owner) {
			o.grant(t, long)
			r.endLease(t, o.key())
			o.rival().grant(t, lease)
		}},
		"held by a process that was killed": {lease, func(t *testing.T, r *rig, _ owner) {
			holder := startChild(t, "holder", holderTask{Addr: r.server.Addr(), Key: "key", Lease: lease})
			holder.heard(t, "running")
			redistest.Eventually(t, patience, func() bool { // so that it dies with a renewal behind it
				return r.server.CommandCount()["pexpire"] > 1
			}, "the child did not renew")
			holder.kill()
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			test.path(t, r, newOwner(r.store))
			r.checkTTLs(t, test.limit)
			r.awaitEmpty(t)
		})
	}
}

// TestR4ReleaseLeavesNothing needs no time to pass.
func TestR4ReleaseLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := newOwner(r.store)
	o.grant(t, long)
	succeed(t, o.release(t.Context()))
	succeed(t, o.release(t.Context())) // sent again
	match(t, o.extend(t.Context(), long), dedupe.ErrLeaseLost)
	match(t, o.complete(t.Context(), nil, long), dedupe.ErrLeaseLost)
	if size := r.direct.DBSize(t.Context()).Val(); size != 0 {
		t.Fatalf("%d keys are left", size)
	}
}

// TestR4HalfAScript has the server stop a script between two of its commands, for want of a
// permission. What it wrote by then must expire all the same.
func TestR4HalfAScript(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, command := range []string{"pexpire", "hset", "hmget", "exists", "del", "time"} {
		t.Run(command, func(t *testing.T) {
			store := redisstore.New(userWithout(t, r, command))
			for name, operation := range operations {
				o := newOwner(store)
				o.over(r.beside()).grant(t, long)
				if name == "claim" {
					succeed(t, r.direct.Del(t.Context(), o.key()).Err())
				}
				if err := operation(t.Context(), o); err != nil {
					match(t, err, dedupe.ErrStoreUnavailable)
				}
				ttl, err := r.direct.PTTL(t.Context(), o.key()).Result()
				succeed(t, err)
				if ttl == -1 {
					t.Errorf("after %s without +%s the record has no TTL", name, command)
				}
			}
		})
	}
}

// userWithout returns a client for a user that may do everything but command.
func userWithout(t *testing.T, r *rig, command string) *redis.Client {
	t.Helper()
	user := "without-" + command
	succeed(t, r.direct.Do(t.Context(), "ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all", "-"+command).Err())
	client := redis.NewClient(&redis.Options{Addr: r.server.Addr(), Username: user, Password: "secret"})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestR4ManyRequests is the whole of it: after ten thousand requests, of which some were refused, and
// the retention, there is nothing left in Redis nor in the process.
func TestR4ManyRequests(t *testing.T) { // not parallel: it counts what the process has
	requests := 10_000
	if testing.Short() {
		requests = 1000
	}
	r := newRig(t)
	s := newService(nil,
		newOnce(t, r.beside(), dedupe.WithRetention(time.Second)),
		newSerialize(t, r.beside(), dedupe.WithMaxHold(time.Minute)),
	)
	s.run(t, "first")
	heap, goroutines := heapInUse(), runtime.NumGoroutine()

	for i := range requests {
		s.run(t, strconv.Itoa(i))
	}
	r.awaitEmpty(t)
	redistest.Eventually(t, patience, func() bool { return runtime.NumGoroutine() <= goroutines },
		"there are more goroutines than before")
	grown := int64(heapInUse()) - int64(heap)
	t.Logf("%d requests: heap %+d bytes, %+d goroutines", requests, grown, runtime.NumGoroutine()-goroutines)
	if perRequest := grown / int64(requests); perRequest > 100 {
		t.Errorf("the heap has grown by %d bytes for each request", perRequest)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // what pools let go of in the first
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// holderTask is what a child is to hold.
type holderTask struct {
	Addr  string
	Key   string
	Lease time.Duration
	Once  bool
}

// playHolder holds a key under a guard until its context ends, and tells why.
func playHolder(text []byte, _ <-chan string, tell func(string, ...any)) {
	task := decode[holderTask](text)
	store := redisstore.New(redis.NewClient(&redis.Options{Addr: task.Addr}))
	settled := make(chan error, 16)
	observe := dedupe.WithObserver(func(e dedupe.Event) {
		if e.Kind == dedupe.EventSettled {
			settled <- e.Err
		}
	})
	guard, err := dedupe.Serialize(store, "account", nil, dedupe.WithLease(task.Lease), observe)
	if task.Once {
		guard, err = dedupe.Once(store, func(dedupe.Request) (string, error) { return "caller", nil }, nil,
			dedupe.WithLease(task.Lease), observe)
	}
	must(err)
	must(guard.Run(context.Background(), task.Key, func(ctx context.Context) error {
		tell("running")
		<-ctx.Done()
		tell("cancelled %v", errors.Is(context.Cause(ctx), dedupe.ErrLeaseLost))
		return nil
	}))
	tell("settled %v", errors.Is(<-settled, dedupe.ErrLeaseLost))
}
