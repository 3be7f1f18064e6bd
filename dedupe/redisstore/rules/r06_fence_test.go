package rules

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// TestR6FencesRise has a key change hands in every way there is. The fences are compared with the
// server's clock as well: they start above whatever a server that lost its data may have given.
func TestR6FencesRise(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := newOwner(r.store)
	ctx := t.Context()
	last := uint64(0)
	grant := func(after string, lease time.Duration) {
		t.Helper()
		o = o.rival()
		fence := o.awaitGrant(t, lease)
		if fence <= last {
			t.Fatalf("after %s the fence went from %d to %d", after, last, fence)
		}
		last = fence
	}
	before := uint64(r.direct.Time(ctx).Val().UnixMicro())
	grant("nothing", long)
	if last < before {
		t.Fatalf("the first fence is %d, below the server's time %d", last, before)
	}
	for range 100 {
		succeed(t, o.release(ctx))
		grant("a release", long)
	}
	succeed(t, o.release(ctx))
	grant("a release", 50*time.Millisecond)
	grant("an expiry", long)

	r.endLease(t, o.key())
	grant("a takeover", long)

	ahead := last + uint64(time.Hour.Microseconds())
	succeed(t, r.direct.HSet(ctx, o.key(), "f", ahead, "e", -2*time.Hour.Microseconds()).Err())
	last = ahead
	grant("the server's clock went back an hour", long)
	if last != ahead+dedupe.FencesPerGrant {
		t.Errorf("the fence after %d is %d", ahead, last)
	}
	last = uint64(r.direct.Time(ctx).Val().UnixMicro())

	succeed(t, r.direct.Del(ctx, o.key()).Err())
	grant("a deletion", long)
	succeed(t, r.direct.FlushAll(ctx).Err())
	grant("FLUSHALL", long)
	r.server.Restart()
	grant("a restart without the data", long)
	r.server.Kill()
	r.server.Restart()
	grant("a crash", long)
	succeed(t, o.complete(ctx, []byte("answer"), 50*time.Millisecond))
	grant("the end of a retention", long)
}

// TestR6ReplicaPromoted has a replica that never heard of the last grants take the master's place.
func TestR6ReplicaPromoted(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.Start(t, redistest.ReplicaOf(master))
	o := newOwner(redisstore.New(master.Client()))
	client := replica.Client()
	o.grant(t, long)
	redistest.Eventually(t, patience, func() bool { return client.Exists(t.Context(), o.key()).Val() == 1 },
		"the replica has not got the record")
	succeed(t, client.ReplicaOf(t.Context(), "NO", "ONE").Err())
	var last uint64
	for range 10 {
		succeed(t, o.release(t.Context()))
		o = o.rival()
		last = o.grant(t, long)
	}
	promoted := o.rival().over(redisstore.New(client))
	succeed(t, client.HSet(t.Context(), o.key(), "e", 0).Err()) // as when the old lease is over
	if fence := promoted.grant(t, long); fence <= last {
		t.Fatalf("the fence went from %d to %d", last, fence)
	}
}

// TestR6FencesOrderHandlers has many handlers compare their fences while they hold the key.
func TestR6FencesOrderHandlers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	guard := newSerialize(t, r.beside(), dedupe.WithWait(patience))
	var last atomic.Uint64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				err := guard.Run(t.Context(), "key", func(ctx context.Context) error {
					lease, _ := guard.Lease(ctx)
					if before := last.Swap(lease.Fence()); before >= lease.Fence() {
						return errors.New("the fence did not rise")
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}
