package dedupe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

func TestLeaseFromWithoutOne(t *testing.T) {
	if _, ok := dedupe.LeaseFrom(t.Context()); ok {
		t.Error("LeaseFrom found a lease where there is none")
	}
	if _, ok := serialize(t, memstore.New()).Lease(t.Context()); ok {
		t.Error("Guard.Lease found a lease where there is none")
	}
}

func TestLeasesOfComposedGuards(t *testing.T) {
	store := memstore.New()
	onlyOnce, account, order := once(t, store), serialize(t, store), inDomain(t, store, "order")
	absent := []*dedupe.Guard{inDomain(t, store, "user"), inDomain(t, store, "once")}
	type key struct{}
	r := ask("7").with(context.WithValue(t.Context(), key{}, "value")).doing(func(ctx context.Context) {
		innermost, ok := dedupe.LeaseFrom(ctx)
		if !ok {
			t.Fatal("there is no lease")
		}
		seen := map[*dedupe.Lease]bool{}
		for _, guard := range []*dedupe.Guard{onlyOnce, account, order} {
			lease, ok := guard.Lease(ctx)
			if !ok || seen[lease] || lease.Fence() == 0 {
				t.Errorf("%s does not find its own lease", guard.Name())
			}
			seen[lease] = true
		}
		if last, _ := order.Lease(ctx); last != innermost {
			t.Error("LeaseFrom does not give the innermost lease")
		}
		for _, guard := range absent {
			if _, ok := guard.Lease(ctx); ok {
				t.Errorf("%s did not see the request and has a lease on it", guard.Name())
			}
		}
		if ctx.Value(key{}) != "value" {
			t.Error("the handler's context lost a value of the client's")
		}
	})
	r.proceeded(t, r.through(onlyOnce, account, order))
}

func TestFencesRise(t *testing.T) {
	guard := serialize(t, memstore.New())
	var last uint64
	for range 10 {
		r := ask("7").doing(func(ctx context.Context) {
			lease, _ := guard.Lease(ctx)
			if lease.Fence() <= last {
				t.Errorf("the fence %d follows %d", lease.Fence(), last)
			}
			last = lease.Fence()
		})
		r.proceeded(t, r.through(guard))
	}
}

// The deadline counts from before the claim was sent, and ends a twentieth early.
func TestDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		spy.intercept(nil, func(context.Context, visit) error {
			time.Sleep(200 * time.Millisecond) // the way back
			return nil
		})
		guard := serialize(t, spy, dedupe.WithLease(20*time.Second))
		sent := time.Now()
		r := ask("7").doing(func(ctx context.Context) {
			lease, _ := guard.Lease(ctx)
			if got, want := lease.Deadline().Sub(sent), 19*time.Second; got != want {
				t.Errorf("the deadline is %v after the claim was sent, want %v", got, want)
			}
			time.Sleep(7 * time.Second)
			if got, want := lease.Deadline(), spy.seen(extend)[0].at.Add(19*time.Second); !got.Equal(want) {
				t.Errorf("after a renewal the deadline is %v, want %v", got, want)
			}
		})
		r.proceeded(t, r.through(guard))
	})
}

func TestCheck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		guard := serialize(t, spy, dedupe.WithLease(time.Minute))
		var after *dedupe.Lease
		r := ask("7").doing(func(ctx context.Context) {
			lease, _ := guard.Lease(ctx)
			after = lease

			time.Sleep(10 * time.Second)
			now := time.Now()
			if err := lease.Check(ctx); err != nil {
				t.Errorf("the lease is held, and Check says %v", err)
			}
			if got, want := lease.Deadline(), now.Add(57*time.Second); !got.Equal(want) {
				t.Errorf("Check moved the deadline to %v, want %v", got, want)
			}

			spy.down()
			before := lease.Deadline()
			err := lease.Check(ctx)
			mustMatch(t, err, dedupe.ErrStoreUnavailable, errDown)
			if errors.Is(err, dedupe.ErrLeaseLost) || ctx.Err() != nil || !lease.Deadline().Equal(before) {
				t.Errorf("an outage is not the end of a lease: %v, %v", err, context.Cause(ctx))
			}

			spy.intercept(func(context.Context, visit) error { return dedupe.ErrLeaseLost }, nil)
			mustMatch(t, lease.Check(ctx), dedupe.ErrLeaseLost)
			mustMatch(t, context.Cause(ctx), dedupe.ErrLeaseLost)

			spy.up()
			seen := len(spy.seen())
			mustMatch(t, lease.Check(context.WithoutCancel(ctx)), dedupe.ErrLeaseLost)
			if len(spy.seen()) != seen {
				t.Error("a lease that is lost was asked for again")
			}
		})
		r.proceeded(t, r.through(guard))

		seen := len(spy.seen())
		mustMatch(t, after.Check(t.Context()), dedupe.ErrLeaseLost)
		if len(spy.seen()) != seen {
			t.Error("the lease of a handler that has returned was asked for again")
		}
	})
}

// Check answers by the clock when nobody has noticed yet that the deadline is over.
func TestCheckAfterTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		guard := serialize(t, spy, dedupe.WithLease(time.Second))
		r := ask("7").doing(func(ctx context.Context) {
			lease, _ := guard.Lease(ctx)
			spy.failing(extend)
			time.Sleep(time.Until(lease.Deadline()))
			mustMatch(t, lease.Check(context.WithoutCancel(ctx)), dedupe.ErrLeaseLost)
		})
		r.proceeded(t, r.through(guard))
	})
}

// A Check that the handler leaves behind finds the key released, which is no loss.
func TestCheckUnderWayWhenTheHandlerReturns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		spy.intercept(func(_ context.Context, v visit) error {
			if v.verb == extend {
				time.Sleep(time.Second)
			}
			return nil
		}, nil)
		var journal journal
		guard := serialize(t, spy, journal.observe())
		checked := make(chan error, 1)
		r := ask("7").doing(func(ctx context.Context) {
			lease, _ := guard.Lease(ctx)
			go func() { checked <- lease.Check(context.WithoutCancel(ctx)) }()
			synctest.Wait()
		})
		r.proceeded(t, r.through(guard))
		mustMatch(t, <-checked, dedupe.ErrLeaseLost)
		if n := len(journal.seen(dedupe.EventLeaseLost)); n != 0 {
			t.Error("the observer was told of a loss")
		}
		next := ask("7")
		next.proceeded(t, next.through(guard))
	})
}

// When the lease further out is lost, the context is over, and the store says so. That does not mean
// that the inner lease is lost.
func TestCheckWithAContextThatAnotherLeaseEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cutOff, healthy := newSpy(), newSpy()
		onlyOnce, account := once(t, cutOff), serialize(t, healthy)
		r := ask("7").doing(func(ctx context.Context) {
			cutOff.failing(extend)
			<-ctx.Done()
			lease, _ := account.Lease(ctx)
			mustMatch(t, lease.Check(ctx), dedupe.ErrStoreUnavailable)
			if err := lease.Check(context.WithoutCancel(ctx)); err != nil {
				t.Errorf("the inner lease is held, and Check says %v", err)
			}
		})
		r.proceeded(t, r.through(onlyOnce, account))
	})
}

// What a handler leaves running must not go on believing that it holds the key.
func TestContextEndsWithTheHandler(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		var inner context.Context
		r := ask("7").doing(func(ctx context.Context) {
			inner = ctx // kept on purpose, as a goroutine would
		})
		r.proceeded(t, r.through(guard(t, memstore.New())))
		if !errors.Is(context.Cause(inner), context.Canceled) || errors.Is(context.Cause(inner), dedupe.ErrLeaseLost) {
			t.Errorf("the cause is %v, want context.Canceled", context.Cause(inner))
		}
	})
}

func TestContextEndsWithTheClients(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		gone := errors.New("client gone")
		ctx, hangUp := context.WithCancelCause(t.Context())
		r := ask("7").with(ctx).doing(func(ctx context.Context) {
			hangUp(gone)
			<-ctx.Done()
			mustMatch(t, context.Cause(ctx), gone)
		})
		r.proceeded(t, r.through(guard(t, memstore.New())))
	})
}

// Any of the leases ends detached work, also one that is lost only after the client has gone.
func TestDetachedWorkEndsWithAnyLease(t *testing.T) {
	for _, lost := range []string{"outer", "inner"} {
		t.Run(lost, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				stores := map[string]*spy{"outer": newSpy(), "inner": newSpy()}
				ctx, hangUp := context.WithCancel(t.Context())
				r := ask("7").with(ctx).doing(func(ctx context.Context) {
					detached := dedupe.Detach(ctx)
					hangUp()
					time.Sleep(65 * time.Second)
					stores[lost].failing(extend)
					free := stores[lost].grantedUntil()
					select {
					case <-detached.Done():
					case <-time.After(time.Hour):
						t.Fatal("it goes on without the lease")
					}
					mustMatch(t, context.Cause(detached), dedupe.ErrLeaseLost)
					if !time.Now().Before(free) {
						t.Errorf("it ended %v after the key was free", time.Since(free))
					}
				})
				r.proceeded(t, r.through(once(t, stores["outer"]), serialize(t, stores["inner"])))
			})
		})
	}
}

func TestDetachAfterTheHandlerIsTooLate(t *testing.T) {
	var late context.Context
	r := ask("7").doing(func(ctx context.Context) {
		late = context.WithoutCancel(ctx) // kept on purpose, as a goroutine would
	})
	r.proceeded(t, r.through(serialize(t, memstore.New())))
	mustMatch(t, context.Cause(dedupe.Detach(late)), context.Canceled)
}
