package rules

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
	"github.com/interlock-go/interlock/keyfuncs"
)

const (
	// patience bounds what must happen sooner or later. Only a test that fails uses it up.
	patience = 20 * time.Second

	// budget is the store's default for one call, and slack what a busy machine may add.
	budget = 250 * time.Millisecond
	slack  = 750 * time.Millisecond

	// long is a lease that does not end while a test runs.
	long = time.Minute
)

// The store's scripts as the proxy sees them.
var (
	claims    = redistest.Script(scriptDigest("claim"))
	extends   = redistest.Script(scriptDigest("extend"))
	completes = redistest.Script(scriptDigest("complete"))
	releases  = redistest.Script(scriptDigest("release"))
)

func scriptSource(name string) string {
	read := func(name string) string {
		source, err := os.ReadFile(filepath.Join("..", "script", name+".lua"))
		must(err)
		return string(source)
	}
	return strings.Replace(read(name), "--[[ line.lua ]]\n", read("line"), 1)
}

func scriptDigest(name string) string {
	sum := sha1.Sum([]byte(scriptSource(name)))
	return hex.EncodeToString(sum[:])
}

// rig is a server that knows the scripts, a proxy in front of it, and a store that reaches it
// through the proxy with a stock client.
type rig struct {
	server *redistest.Server
	direct *redis.Client // past the proxy
	proxy  *redistest.Proxy
	store  *redisstore.Store
}

func newRig(t *testing.T, options ...redistest.Option) *rig {
	t.Helper()
	r := &rig{server: redistest.Start(t, options...)}
	r.direct = r.server.Client()
	r.proxy = redistest.NewProxy(t, r.server.Addr())
	r.store = r.through(t)
	for _, name := range []string{"claim", "extend", "complete", "release"} {
		succeed(t, r.direct.ScriptLoad(t.Context(), scriptSource(name)).Err())
	}
	return r
}

// through returns one more store like r.store, with a client of its own, as another process has.
func (r *rig) through(t *testing.T) *redisstore.Store {
	t.Helper()
	return redisstore.New(stockClient(t, r.proxy.Addr()))
}

// beside returns a store that does not go through the proxy.
func (r *rig) beside() *redisstore.Store { return redisstore.New(r.server.Client()) }

func stockClient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// record returns everything that Redis has under a key.
func (r *rig) record(t *testing.T, key string) map[string]string {
	t.Helper()
	fields, err := r.direct.HGetAll(t.Context(), key).Result()
	succeed(t, err)
	return fields
}

// endLease makes the lease of a record end now, while the record stays as it does for less than a
// millisecond when that happens by itself.
func (r *rig) endLease(t *testing.T, key string) {
	t.Helper()
	succeed(t, r.direct.HSet(t.Context(), key, "e", 0).Err()) // counted from the fence, which was the time
}

// awaitEmpty returns when Redis has no key any more.
func (r *rig) awaitEmpty(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, patience, func() bool {
		size, err := r.direct.DBSize(t.Context()).Result()
		return err == nil && size == 0
	}, "keys are left in Redis")
}

// owner is one token's hold on one key, by the methods of a store.
type owner struct {
	store  *redisstore.Store
	holder dedupe.Holder
}

func newOwner(store *redisstore.Store) owner {
	o := owner{store: store}
	_, _ = rand.Read(o.holder.Digest[:])
	_, _ = rand.Read(o.holder.Token[:])
	return o
}

// rival returns another owner of the same key.
func (o owner) rival() owner {
	_, _ = rand.Read(o.holder.Token[:])
	return o
}

// over returns the same owner on another store.
func (o owner) over(store *redisstore.Store) owner {
	o.store = store
	return o
}

func (o owner) key() string { return o.store.Key(o.holder.Digest) }

func (o owner) claim(ctx context.Context, lease time.Duration) (dedupe.Claimed, error) {
	return o.store.Claim(ctx, dedupe.Claim{Holder: o.holder, Lease: lease})
}

// grant claims the key and returns the fence.
func (o owner) grant(t *testing.T, lease time.Duration) uint64 {
	t.Helper()
	claimed, err := o.claim(t.Context(), lease)
	succeed(t, err)
	if claimed.Status != dedupe.StatusGranted {
		t.Fatalf("the claim found the key %v", claimed.Status)
	}
	return claimed.Fence
}

// awaitGrant claims the key until it is granted.
func (o owner) awaitGrant(t *testing.T, lease time.Duration) (fence uint64) {
	t.Helper()
	redistest.Eventually(t, patience, func() bool {
		claimed, err := o.claim(t.Context(), lease)
		fence = claimed.Fence
		return err == nil && claimed.Status == dedupe.StatusGranted
	}, "the key was not granted")
	return fence
}

func (o owner) extend(ctx context.Context, lease time.Duration) error {
	return o.store.Extend(ctx, o.holder, lease)
}

func (o owner) complete(ctx context.Context, answer []byte, retention time.Duration) error {
	return o.store.Complete(ctx, o.holder, answer, retention)
}

func (o owner) release(ctx context.Context) error { return o.store.Release(ctx, o.holder) }

// operations are a store's four, for an owner that holds its key. The claim is that of a rival:
// its owner's would be granted again.
var operations = map[string]func(ctx context.Context, o owner) error{
	"claim":    func(ctx context.Context, o owner) error { _, err := o.rival().claim(ctx, long); return err },
	"extend":   func(ctx context.Context, o owner) error { return o.extend(ctx, long) },
	"complete": func(ctx context.Context, o owner) error { return o.complete(ctx, []byte("answer"), time.Hour) },
	"release":  func(ctx context.Context, o owner) error { return o.release(ctx) },
}

// requestKey is where requests have the key of either guard.
var requestKey = keyfuncs.Header("Idempotency-Key")

func newOnce(t *testing.T, store dedupe.Store, options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Once(store, keyfuncs.Anyone, requestKey, options...)
	succeed(t, err)
	return guard
}

func newSerialize(t *testing.T, store dedupe.Store, options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Serialize(store, "account", requestKey, options...)
	succeed(t, err)
	return guard
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// match checks that err is what a sentinel stands for and nothing else a store may return.
func match(t *testing.T, err, sentinel error) {
	t.Helper()
	for _, other := range []error{dedupe.ErrStoreUnavailable, dedupe.ErrRecordUnreadable, dedupe.ErrLeaseLost} {
		if got, want := errors.Is(err, other), other == sentinel; got != want {
			t.Fatalf("got the error %v, want one that is %v and no other", err, sentinel)
		}
	}
}

// await returns what comes from a channel.
func await[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatalf("%s did not happen within %v", what, patience)
		panic("unreachable")
	}
}
