package dedupe_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

// One request that meets its own lock must not wait for itself.
func TestSameGuardTwice(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		spy := newSpy()
		g := guard(t, spy)
		r := ask("7")
		r.proceeded(t, r.through(g, g))
		if n := len(spy.seen(claim)); n != 1 {
			t.Errorf("the key was claimed %d times", n)
		}
		if n := len(spy.seen(complete, release)); n != 1 {
			t.Errorf("the key was given back %d times", n)
		}
	})
}

// A group's guard and a route's, built in two places.
func TestTwoGuardsOfOneDomain(t *testing.T) {
	spy := newSpy()
	group, route := serialize(t, spy), serialize(t, spy)
	r := ask("7").doing(func(ctx context.Context) {
		outer, ok := group.Lease(ctx)
		if inner, found := route.Lease(ctx); !ok || !found || inner != outer {
			t.Error("the route's guard does not find the lease of the group's")
		}
	})
	r.proceeded(t, r.through(group, route))
	spy.sees(t, claim, release)
}

func TestRunInsideTheHandlerForTheSameKey(t *testing.T) {
	spy := newSpy()
	guard := serialize(t, spy)
	r := ask("7").doing(func(ctx context.Context) {
		ran := false
		if err := guard.Run(ctx, "7", func(context.Context) error { ran = true; return nil }); err != nil || !ran {
			t.Errorf("the job ran: %t, with the error %v", ran, err)
		}
		spy.sees(t, claim)
	})
	r.proceeded(t, r.through(guard))
	spy.sees(t, claim, release)
}

func TestNotReentrant(t *testing.T) {
	store := memstore.New()
	for _, test := range []struct {
		name  string
		inner func(*spy) *dedupe.Guard
		want  dedupe.Outcome
	}{
		{"another store", func(*spy) *dedupe.Guard { return serialize(t, store) }, dedupe.Locked},
		{"another domain", func(s *spy) *dedupe.Guard { return inDomain(t, s, "order") }, dedupe.Locked},
		{"another kind", func(s *spy) *dedupe.Guard { return once(t, s) }, dedupe.InFlight},
	} {
		t.Run(test.name, func(t *testing.T) {
			spy := newSpy()
			inner := test.inner(spy)
			r := ask("7").doing(func(context.Context) {
				refused(t, ask("7").through(inner), test.want)
			})
			r.proceeded(t, r.through(serialize(t, spy), inner))
		})
	}
}

// Only the key that is not held yet is taken, and both fences are to be had.
func TestPartlyHeldKeys(t *testing.T) {
	spy := newSpy()
	account, transfer := serialize(t, spy), transfers(t, spy)
	for _, keys := range [][]string{{"1", "2"}, {"2", "1"}} {
		var outer uint64
		r := ask(keys...).doing(func(ctx context.Context) {
			lease, ok := transfer.Lease(ctx)
			if !ok {
				t.Fatal("there is no lease")
			}
			if got := lease.Fence(); got != outer || got == 0 {
				t.Errorf("Fence is %d, want %d, which the guard further out got for the first key", got, outer)
			}
			if fence, held := lease.FenceOf(keys[0]); !held || fence != outer {
				t.Errorf("FenceOf the outer key is %d (%t), want %d", fence, held, outer)
			}
			if fence, held := lease.FenceOf(keys[1]); !held || fence == 0 {
				t.Errorf("FenceOf the inner key is %d (%t)", fence, held)
			}
		})
		spy.visits = nil
		between := inDomain(t, spy, "order") // is passed over on the way out
		err := account.Run(t.Context(), keys[0], func(ctx context.Context) error {
			lease, _ := account.Lease(ctx)
			outer = lease.Fence()
			return r.with(ctx).through(between, transfer)
		})
		r.proceeded(t, err)
		spy.sees(t, claim, claim, claim, release, release, release)
	}
}

// A goroutine that outlives its handler does not hold the key any more, though its context says so.
func TestEndedLeaseIsNotReentrant(t *testing.T) {
	spy := newSpy()
	guard := serialize(t, spy)
	var late context.Context
	r := ask("7").doing(func(ctx context.Context) {
		late = context.WithoutCancel(ctx) // kept on purpose, as a goroutine would
	})
	r.proceeded(t, r.through(guard))

	err := guard.Run(late, "7", func(ctx context.Context) error {
		refused(t, ask("7").through(guard), dedupe.Locked)
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
	spy.sees(t, claim, release, claim, release)

	busy := ask("7").doing(func(context.Context) {
		err := guard.Run(late, "7", func(context.Context) error { return nil })
		refused(t, err, dedupe.Locked)
	})
	busy.proceeded(t, busy.through(guard))
}

// A lost lease is not held either, even while its handler goes on.
func TestLostLeaseIsNotReentrant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		guard := serialize(t, spy, dedupe.WithLease(time.Second))
		r := ask("7").doing(func(ctx context.Context) {
			spy.failing(extend)
			<-ctx.Done()
			spy.up()
			time.Sleep(time.Second) // the store lets another have the key
			other := ask("7").doing(func(context.Context) {
				refused(t, guard.Run(context.WithoutCancel(ctx), "7", func(context.Context) error { return nil }), dedupe.Locked)
			})
			other.proceeded(t, other.through(guard))
		})
		r.proceeded(t, r.through(guard))
	})
}
