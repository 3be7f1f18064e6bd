package waiting

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// oneAfterTheOther has all attempts hold the key, each alone, in whatever order, with rising fences.
func oneAfterTheOther(t *testing.T, last uint64, attempts ...*attempt) {
	t.Helper()
	for len(attempts) > 0 {
		var holder int
		redistest.Eventually(t, patience, func() bool {
			for i, a := range attempts {
				if len(a.granted) > 0 {
					holder = i
					return true
				}
			}
			return false
		}, "nobody gets the key")
		a := attempts[holder]
		fence := a.awaitGrant(t)
		if fence <= last {
			t.Errorf("fence %d after fence %d", fence, last)
		}
		last = fence
		attempts = append(attempts[:holder:holder], attempts[holder+1:]...)
		for _, other := range attempts {
			other.wantWaiting(t)
		}
		a.release(t)
	}
}

// TestRestartWithWaiters restarts a server, which forgets the key and the line. Those that waited get the
// key one after the other, and the holder learns that its lease is lost.
func TestRestartWithWaiters(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	w := siteOf(server).watch(t)
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	holder := w.member(t, short).begin(lockKey)
	fence := holder.awaitGrant(t)
	waiting := w.lineUp(t, lockKey, w.member(t, short), w.member(t, short), w.member(t, short))
	server.Restart()
	oneAfterTheOther(t, fence, waiting...)
	holder.awaitEnd(t, "lost")
	w.awaitFree(t)
}

// TestScriptFlushWithWaiters has the server forget the scripts while others wait.
func TestScriptFlushWithWaiters(t *testing.T) {
	t.Parallel()
	w := siteOf(redistest.Start(t)).watch(t)
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	holder := w.member(t, long).begin(lockKey)
	fence := holder.awaitGrant(t)
	waiting := w.lineUp(t, lockKey, w.member(t, long), w.member(t, long))
	succeed(t, w.client.ScriptFlush(t.Context()).Err())
	holder.release(t)
	oneAfterTheOther(t, fence, waiting...)
	w.awaitFree(t)
}

// TestFullServerWithWaiters has a server take no more data while others wait: the key is passed on all the
// same, to all of them, and answers are kept.
func TestFullServerWithWaiters(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	w := siteOf(server).watch(t)
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	fetchKey := request{Kind: fetch, Key: "value", Wait: wait}
	w.client.ScriptFlush(t.Context())

	first := w.member(t, long).begin(fetchKey)
	first.awaitGrant(t)
	repeat := w.lineUp(t, fetchKey, w.member(t, long))[0]
	server.Config(t, "maxmemory", "1")
	first.release(t)
	if e := repeat.awaitEnd(t, "done"); e.Value != "value" {
		t.Errorf("the repeat got %q", e.Value)
	}
	server.Config(t, "maxmemory", "0")
	succeed(t, w.client.FlushDB(t.Context()).Err())

	holder := w.member(t, long).begin(lockKey)
	fence := holder.awaitGrant(t)
	waiting := w.lineUp(t, lockKey, w.member(t, long), w.member(t, long))
	server.Config(t, "maxmemory", "1")
	holder.release(t)
	oneAfterTheOther(t, fence, waiting...)
	w.awaitFree(t)
}

// TestFailoverWithWaiters kills the master while others wait. They get the key of the new one, one after
// the other, or are told that there was none; and those that come then line up there.
func TestFailoverWithWaiters(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	s := site{Prefix: newPrefix()}
	members := make([]process, 4)
	for i := range members {
		members[i] = s.memberWith(t, sentinel.Client(), short)
	}
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	holder := members[0].begin(lockKey)
	fence := holder.awaitGrant(t)
	master := sentinel.Master()
	w := watch{s, master.Client()}
	waiting := w.lineUp(t, lockKey, members[1:]...)
	master.Kill()
	w.client = sentinel.AwaitPromotion(t, master).Client()
	holder.awaitEnd(t, "lost")
	for range waiting {
		redistest.Eventually(t, patience, func() bool {
			waiting = slices.DeleteFunc(waiting, func(a *attempt) bool { return len(a.ended) > 0 })
			return len(waiting) == 0 || slices.ContainsFunc(waiting, func(a *attempt) bool { return len(a.granted) > 0 })
		}, "nobody gets the key")
		for _, a := range waiting {
			if len(a.granted) > 0 {
				fence = max(fence, a.awaitGrant(t))
				a.release(t)
				break
			}
		}
	}
	redistest.Eventually(t, patience, func() bool {
		holder = members[0].begin(lockKey)
		next, ok := <-holder.granted
		if ok && next <= fence {
			t.Errorf("fence %d after fence %d", next, fence)
		}
		return ok
	}, "nobody gets the key of the new master")
	waiting = w.lineUp(t, lockKey, members[1:]...)
	holder.release(t)
	oneAfterTheOther(t, fence, waiting...)
	w.awaitFree(t)
}

// TestMigrationWithWaiters moves a slot while others wait for a key in it, at each stage of which the
// holder lets go.
func TestMigrationWithWaiters(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	for name, release := range map[string]int{"Begun": 1, "Moved": 2, "Finished": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := site{Addrs: cluster.Addrs(), Cluster: true, Prefix: newPrefix()}.watch(t)
			lockKey := request{Kind: lock, Key: name, Wait: wait}
			holder := w.member(t, long).begin(lockKey)
			fence := holder.awaitGrant(t)
			waiting := w.lineUp(t, lockKey, w.member(t, long), w.member(t, long), w.member(t, long))
			slot := cluster.Slot(w.record(t).key)
			from := cluster.Owner(slot)
			to := cluster.Nodes()[0]
			if to == from {
				to = cluster.Nodes()[1]
			}
			for stage, step := range []func(){
				func() { cluster.BeginMigration(t, slot, from, to) },
				func() { cluster.MoveKeys(t, slot, from, to) },
				func() { cluster.FinishMigration(t, slot, from, to) },
			} {
				step()
				if stage+1 == release {
					holder.release(t)
					if stage == 0 { // later, nobody listens where the key is
						waiting[0].awaitSoon(t)
						waiting[0].release(t)
						waiting = waiting[1:]
					}
				}
			}
			oneAfterTheOther(t, fence, waiting...)

			// They listen at the new owner from now on.
			holder = w.member(t, long).begin(lockKey)
			holder.awaitGrant(t)
			next := w.lineUp(t, lockKey, w.member(t, long))[0]
			if n, err := to.Client().PubSubShardChannels(t.Context(), w.Prefix+"*").Result(); err != nil || len(n) == 0 {
				t.Errorf("nobody listens at the new owner: %v", err)
			}
			holder.release(t)
			next.awaitSoon(t)
			next.release(t)
		})
	}
}
