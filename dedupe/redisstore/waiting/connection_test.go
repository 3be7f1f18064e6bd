package waiting

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// soon bounds how long a waiter may sleep beside a key that became free while it could not be told: a
// subscription that has fallen silent is given up after two seconds. The leases here last longer.
const soon = 5*time.Second + slack

// newWire returns a server, a site behind a proxy in front of it, and one past it.
func newWire(t *testing.T) (proxy *redistest.Proxy, behind site, direct watch) {
	t.Helper()
	server := redistest.Start(t)
	proxy = redistest.NewProxy(t, server.Addr())
	s := siteOf(server)
	return proxy, s.through(proxy), s.watch(t)
}

// awaitSoon checks that an attempt gets the key long before the lease of the holder before it ends.
func (a *attempt) awaitSoon(t *testing.T) {
	t.Helper()
	began := time.Now()
	a.awaitGrant(t)
	if took := time.Since(began); took > soon {
		t.Errorf("the waiter got the key only after %v", took)
	}
}

// TestCutSubscription cuts all connections of a process that waits. It listens again, and keeps its place
// if the key was not released meanwhile.
func TestCutSubscription(t *testing.T) {
	t.Parallel()
	proxy, behind, w := newWire(t)
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	for _, meanwhile := range []bool{false, true} {
		holder := w.member(t, long).begin(lockKey)
		holder.awaitGrant(t)
		cut := behind.member(t, long)
		waiting := w.lineUp(t, lockKey, cut, w.member(t, long))
		before := subscriptions(t, w)
		proxy.CutAll()
		if meanwhile {
			holder.release(t)
		} else {
			place := w.record(t).line()[0]
			redistest.Eventually(t, patience, func() bool {
				now := subscriptions(t, w)
				return len(now) == len(before) && !slices.Equal(now, before)
			}, "who was cut off does not listen again")
			if line := w.awaitLine(t, 2); line[0] != place {
				t.Error("who was cut off has lost its place")
			}
			holder.release(t)
		}
		first, second := waiting[0], waiting[1]
		redistest.Eventually(t, patience, func() bool { return len(first.granted)+len(second.granted) > 0 }, "nobody got the key")
		if len(second.granted) > 0 { // the other one was not listening at that moment
			first, second = second, first
		}
		first.awaitGrant(t)
		second.wantWaiting(t)
		first.release(t)
		second.awaitSoon(t)
		second.release(t)
		w.awaitFree(t)
	}
}

// TestSilentSubscription has the subscription of a process that waits fall silent, while the server takes
// the process for alive. It notices, listens on another connection, and asks.
func TestSilentSubscription(t *testing.T) {
	t.Parallel()
	w := siteOf(redistest.Start(t)).watch(t)
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	holder := w.member(t, long).begin(lockKey)
	holder.awaitGrant(t)
	var silent ear
	waiting := w.lineUp(t, lockKey, w.deaf(t, &silent, long))[0]
	silent.silence()
	holder.release(t)
	waiting.awaitSoon(t)
	waiting.release(t)
	w.awaitFree(t)
}

// TestBlackHole cuts a process that waits off the server, without a word to either. Its wait ends in time,
// and its place holds up the others for the short lease of a grant; when the network is back, what it
// hears about that is not believed.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	proxy, behind, w := newWire(t)
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	impatient := request{Kind: lock, Key: "key", Wait: 2 * time.Second}
	holder := w.member(t, long).begin(lockKey)
	holder.awaitGrant(t)
	// A claim that comes through late, after all that took it back, holds the key for its lease.
	const lease = 5 * time.Second
	lost := behind.member(t, lease)
	off := w.lineUp(t, lockKey, lost)[0]
	waiting := w.lineUp(t, lockKey, w.member(t, long))[0]
	late := behind.member(t, lease).begin(impatient)
	w.awaitLine(t, 3)
	proxy.BlackHole()
	holder.release(t)
	waiting.awaitSoon(t)
	e := <-late.ended
	if e.Outcome == "done" || e.Waited > impatient.Wait+budget+slack {
		t.Errorf("a wait of %v ended with %+v", impatient.Wait, e)
	}
	off.wantWaitingOrUnavailable(t)
	proxy.Resume()
	off.wantWaitingOrUnavailable(t)
	waiting.release(t)
	select {
	case _, ok := <-off.granted:
		if ok {
			off.release(t)
		} else {
			off.awaitEnd(t, "unavailable")
		}
	case <-time.After(patience):
		t.Error("who was cut off waits on beside a free key")
	}
	w.awaitFree(t)
}

// wantWaitingOrUnavailable checks that an attempt does not have the key. It may have been told that the
// store does not answer.
func (a *attempt) wantWaitingOrUnavailable(t *testing.T) {
	t.Helper()
	select {
	case fence, ok := <-a.granted:
		if ok {
			t.Fatalf("the attempt has the key, with fence %d, while another has it", fence)
		}
	default:
	}
}

// TestLostWord loses the one message that tells of a grant. The grantee, which believes the holder to have
// the key still, asks when that one's lease would be over; those behind it when the short lease is.
func TestLostWord(t *testing.T) {
	t.Parallel()
	t.Run("Alone", func(t *testing.T) {
		t.Parallel()
		w := siteOf(redistest.Start(t)).watch(t)
		lockKey := request{Kind: lock, Key: "key", Wait: wait}
		holder := w.member(t, short).begin(lockKey)
		holder.awaitGrant(t)
		var deaf ear
		waiting := w.lineUp(t, lockKey, w.deaf(t, &deaf, short))[0]
		deaf.lose(words("granted"))
		holder.release(t)
		waiting.awaitSoon(t)
		if deaf.count() == 0 {
			t.Error("no message was lost")
		}
		waiting.release(t)
		w.awaitFree(t)
	})
	t.Run("FirstOfTwo", func(t *testing.T) {
		t.Parallel()
		w := siteOf(redistest.Start(t)).watch(t)
		lockKey := request{Kind: lock, Key: "key", Wait: wait}
		holder := w.member(t, long).begin(lockKey)
		holder.awaitGrant(t)
		var deaf ear
		waiting := w.lineUp(t, lockKey, w.deaf(t, &deaf, long), w.member(t, long))
		deaf.lose(words("granted"))
		holder.release(t)
		waiting[1].awaitSoon(t)
		waiting[0].wantWaiting(t)
		deaf.lose(nil)
		waiting[1].release(t)
		if deaf.count() == 0 {
			t.Error("no message was lost")
		}
	})
}
