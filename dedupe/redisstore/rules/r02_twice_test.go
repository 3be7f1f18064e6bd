package rules

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// soon is long for a few calls, and short beside the default lease of 30 s, which is what a claim
// that is refused by itself has to wait for.
const soon = 5 * time.Second

// TestR2ReplyCutOff breaks the connection after, or before, the server has carried an operation out,
// so that the stock client sends it once more. Nobody notices.
func TestR2ReplyCutOff(t *testing.T) {
	t.Parallel()
	for fault, broken := range map[string]redistest.Fault{
		"after":  redistest.CutAfterRequest,
		"before": redistest.CutBeforeRequest,
	} {
		for name, script := range map[string]redistest.Match{"claim": claims, "complete": completes, "release": releases} {
			t.Run(name+"/"+fault, func(t *testing.T) {
				r := newRig(t)
				once := newService(nil, newOnce(t, r.store))
				account := newService(nil, newSerialize(t, r.store))
				cut := r.proxy.On(script, 1, broken)
				start := time.Now()
				if name != "release" {
					first := once.run(t, "key")
					once.replay(t, "key", first)
				}
				if name != "complete" {
					account.run(t, "key")
					account.run(t, "key")
				}
				if took := time.Since(start); took > soon {
					t.Errorf("the requests took %v", took)
				}
				if cut.Fired() != 1 {
					t.Fatalf("%d connections were cut", cut.Fired())
				}
			})
		}
		t.Run("extend/"+fault, func(t *testing.T) {
			r := newRig(t)
			cut := r.proxy.On(extends, 1, broken)
			err := newSerialize(t, r.store).Run(t.Context(), "key", func(ctx context.Context) error {
				lease, _ := dedupe.LeaseFrom(ctx)
				return lease.Check(ctx)
			})
			succeed(t, err)
			if cut.Fired() != 1 {
				t.Fatalf("%d connections were cut", cut.Fired())
			}
		})
	}
}

// TestR2ClaimSentTwiceIsOneGrant compares what both claims got.
func TestR2ClaimSentTwiceIsOneGrant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := newOwner(r.store)
	fence := o.grant(t, long)
	if again := o.grant(t, long); again != fence {
		t.Fatalf("sent again, the claim has the fence %d, not %d", again, fence)
	}
	claimed, err := o.rival().claim(t.Context(), long)
	if err != nil || claimed.Status != dedupe.StatusHeld {
		t.Fatalf("a rival's claim found the key %v (%v)", claimed.Status, err)
	}
}

// TestR2ReplyDropped has the connection go silent instead, which the store tells only by its budget.
func TestR2ReplyDropped(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script redistest.Match
		// ask sends the request whose reply is lost, and those that follow.
		ask func(t *testing.T, r *rig, dropped *redistest.Rule)
	}{
		"claim of a once": {claims, func(t *testing.T, r *rig, _ *redistest.Rule) {
			s := newService(nil, newOnce(t, r.store))
			s.refuse(t, "key", http.StatusServiceUnavailable, "store-unavailable")
			first := s.repeat(t, "key")
			s.replay(t, "key", first)
		}},
		"claim of a serialize": {claims, func(t *testing.T, r *rig, _ *redistest.Rule) {
			s := newService(nil, newSerialize(t, r.store))
			s.refuse(t, "key", http.StatusServiceUnavailable, "store-unavailable")
			s.repeat(t, "key")
		}},
		"complete": {completes, func(t *testing.T, r *rig, dropped *redistest.Rule) {
			s := newService(nil, newOnce(t, r.store))
			first := s.run(t, "key")
			if dropped.Fired() == 0 {
				t.Fatal("the client got its answer before that was saved")
			}
			if again := s.repeat(t, "key"); !again.replayed || again.body != first.body {
				t.Fatalf("the repeat got %+v, not %+v", again, first)
			}
		}},
		"release": {releases, func(t *testing.T, r *rig, _ *redistest.Rule) {
			s := newService(nil, newSerialize(t, r.store))
			s.run(t, "key")
			s.repeat(t, "key")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			dropped := r.proxy.On(test.script, 1, redistest.DropReply)
			start := time.Now()
			test.ask(t, r, dropped)
			if took := time.Since(start); took > soon {
				t.Errorf("the requests took %v", took)
			}
			if dropped.Fired() != 1 {
				t.Fatalf("%d replies were dropped", dropped.Fired())
			}
		})
	}
}

// oneConnection returns a store all of whose calls follow each other on one connection.
func oneConnection(t *testing.T, r *rig) *redisstore.Store {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: r.proxy.Addr(), PoolSize: 1, MaxActiveConns: 1})
	t.Cleanup(func() { _ = client.Close() })
	return redisstore.New(client)
}

// TestR2ReplyOfAnotherCall gives each operation the reply to the call before it, which would be just
// what it hopes for.
func TestR2ReplyOfAnotherCall(t *testing.T) {
	t.Parallel()
	for name, operation := range map[string]func(context.Context, owner) error{
		"claim": func(ctx context.Context, o owner) error {
			claimed, err := o.claim(ctx, long)
			if err == nil && claimed.Status == dedupe.StatusGranted {
				return nil
			}
			return errors.Join(errors.New("no grant"), err)
		},
		"extend":   operations["extend"],
		"complete": operations["complete"],
		"release":  operations["release"],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			store := oneConnection(t, r)
			other := newOwner(store)
			mine := newOwner(store)
			mine.grant(t, long)
			for what, before := range map[string]owner{"another key": other, "the same owner": mine} {
				before.grant(t, long)
				succeed(t, operation(t.Context(), before))
				succeed(t, r.direct.Del(t.Context(), mine.key()).Err())
				mine.rival().over(r.beside()).grant(t, long)

				stale := r.proxy.On(redistest.Any, 1, redistest.StaleReply)
				err := operation(t.Context(), mine)
				match(t, err, dedupe.ErrStoreUnavailable)
				if stale.Fired() != 1 {
					t.Fatalf("after that of %s: %d replies were replaced", what, stale.Fired())
				}
				succeed(t, r.direct.Del(t.Context(), mine.key()).Err())
			}
		})
	}
}

// TestR2RepliesShifted has every call from some point on get the reply to the one before it, as on a
// connection that was put back into the pool with a reply still to come.
func TestR2RepliesShifted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	store := oneConnection(t, r)
	newOwner(store).grant(t, long)
	shift := r.proxy.On(claims, 1, redistest.ShiftReplies)
	for range 5 {
		claimed, err := newOwner(store).claim(t.Context(), long)
		if claimed.Status == dedupe.StatusGranted {
			t.Fatal("the grant of another key was believed")
		}
		match(t, err, dedupe.ErrStoreUnavailable)
	}
	if shift.Fired() != 1 {
		t.Fatal("nothing was shifted")
	}
}
