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

func TestRenewalAtAThirdOfTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		began := time.Now()
		r := ask("7").doing(func(ctx context.Context) {
			time.Sleep(65 * time.Second)
			if ctx.Err() != nil {
				t.Errorf("the lease was lost: %v", context.Cause(ctx))
			}
		})
		r.proceeded(t, r.through(serialize(t, spy, dedupe.WithLease(30*time.Second))))

		renewals := spy.seen(extend)
		if len(renewals) != 6 {
			t.Fatalf("there were %d renewals in 65s, want 6", len(renewals))
		}
		for i, v := range renewals {
			if got, want := v.at.Sub(began), time.Duration(i+1)*10*time.Second; got != want || v.lasts != 30*time.Second {
				t.Errorf("renewal %d was after %v for %v, want after %v for 30s", i+1, got, v.lasts, want)
			}
		}
	})
}

func TestNoRenewalForAQuickHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		r := ask("7").doing(lasting(10*time.Second - 1))
		r.proceeded(t, r.through(serialize(t, spy, dedupe.WithLease(30*time.Second))))
		time.Sleep(time.Hour)
		spy.sees(t, claim, release)
	})
}

// A handler that takes no notice of its client keeps its key, and its renewals a live context.
func TestRenewalGoesOnWithoutTheClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		guard := serialize(t, spy, dedupe.WithLease(30*time.Second))
		ctx, hangUp := context.WithCancel(t.Context())
		r := ask("7").with(ctx).doing(func(context.Context) {
			hangUp()
			time.Sleep(65 * time.Second)
			refused(t, ask("7").through(guard), dedupe.Locked)
		})
		r.proceeded(t, r.through(guard))
		for _, v := range spy.seen(extend) {
			if v.cause != nil {
				t.Errorf("a renewal was sent with a dead context: %v", v.cause)
			}
		}
	})
}

func TestSingleFailuresOfRenewalAreTolerated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		var journal journal
		spy.intercept(func(_ context.Context, v visit) error {
			if v.verb == extend && len(spy.seen(extend))%2 == 1 {
				return errors.Join(dedupe.ErrStoreUnavailable, errDown)
			}
			return nil
		}, nil)
		r := ask("7").doing(func(ctx context.Context) {
			time.Sleep(5 * time.Minute)
			if ctx.Err() != nil {
				t.Errorf("the lease was lost: %v", context.Cause(ctx))
			}
		})
		r.proceeded(t, r.through(serialize(t, spy, dedupe.WithLease(30*time.Second), journal.observe())))

		renewals := spy.seen(extend)
		if len(renewals) < 2 {
			t.Fatal("a failed renewal was not repeated")
		}
		if got := renewals[1].at.Sub(renewals[0].at); got != 2500*time.Millisecond {
			t.Errorf("a failed renewal was repeated after %v, want a twelfth of the lease", got)
		}
		failures := journal.seen(dedupe.EventRenewFailed)
		if want := (len(renewals) + 1) / 2; len(failures) != want {
			t.Errorf("the observer was told of %d failures, want %d", len(failures), want)
		}
		mustMatch(t, failures[0].Err, errDown)
	})
}

// In an outage the handler is told before the store can grant the key to another, whenever the
// outage begins and however slow the store was until then.
func TestHandlerIsToldBeforeTheKeyIsFree(t *testing.T) {
	for _, test := range []struct {
		name  string
		after time.Duration // when the store goes down: not at the moment of a renewal
		delay time.Duration // how long its replies take
	}{
		{"before the first renewal", 0, 0},
		{"after the first renewal", 11 * time.Second, 0},
		{"after many", 185 * time.Second, 0},
		{"with slow replies", 25 * time.Second, 200 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				spy := newSpy()
				spy.intercept(nil, func(context.Context, visit) error {
					time.Sleep(test.delay)
					return nil
				})
				var journal journal
				guard := serialize(t, spy, dedupe.WithLease(30*time.Second), journal.observe())
				elsewhere := serialize(t, spy.behind)
				r := ask("7").doing(func(ctx context.Context) {
					time.Sleep(test.after)
					free := spy.grantedUntil()
					spy.failing(extend)
					<-ctx.Done()
					mustMatch(t, context.Cause(ctx), dedupe.ErrLeaseLost)
					if errors.Is(context.Cause(ctx), dedupe.ErrHoldTooLong) {
						t.Error("the outage is taken for the maximum hold")
					}
					if got := time.Until(free); got != 1500*time.Millisecond {
						t.Errorf("the handler was told %v before the key was free, want a twentieth of the lease", got)
					}
					refused(t, ask("7").through(elsewhere), dedupe.Locked)
					time.Sleep(time.Until(free))
					next := ask("7")
					next.proceeded(t, next.through(elsewhere))
				})
				r.proceeded(t, r.through(guard))
				if n := len(journal.seen(dedupe.EventLeaseLost)); n != 1 {
					t.Errorf("the observer was told %d times that the lease was lost", n)
				}
			})
		})
	}
}

// The deadline does not depend on the store returning.
func TestStoreThatNeverReturnsDoesNotStopTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		stuck := make(chan struct{})
		spy.intercept(func(_ context.Context, v visit) error {
			if v.verb == extend {
				<-stuck
			}
			return nil
		}, nil)
		r := ask("7").doing(func(ctx context.Context) {
			defer close(stuck)
			free := spy.grantedUntil()
			<-ctx.Done()
			mustMatch(t, context.Cause(ctx), dedupe.ErrLeaseLost)
			if !time.Now().Before(free) {
				t.Errorf("the handler was told %v after the key was free", time.Since(free))
			}
		})
		r.proceeded(t, r.through(serialize(t, spy, dedupe.WithLease(30*time.Second))))
	})
}

func TestLossThatTheStoreReports(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		var journal journal
		guard := serialize(t, spy, dedupe.WithLease(30*time.Second), journal.observe())
		r := ask("7").doing(func(ctx context.Context) {
			mine := spy.seen(claim)[0].holder
			if err := spy.behind.Release(t.Context(), mine); err != nil { // an operator deletes the key
				t.Fatal(err)
			}
			began := time.Now()
			<-ctx.Done()
			mustMatch(t, context.Cause(ctx), dedupe.ErrLeaseLost)
			if got := time.Since(began); got != 10*time.Second {
				t.Errorf("the loss was noticed after %v, want with the first renewal", got)
			}
			time.Sleep(time.Minute)
		})
		r.proceeded(t, r.through(guard))
		if n := len(spy.seen(extend)); n != 1 {
			t.Errorf("a lost lease was renewed %d times more", n-1)
		}
		lost := journal.seen(dedupe.EventLeaseLost)
		if len(lost) != 1 || lost[0].Held != 10*time.Second || lost[0].Fence == 0 {
			t.Errorf("the observer was told %+v", lost)
		}
	})
}

func TestMaxHold(t *testing.T) {
	for _, test := range []struct {
		name        string
		lease, most time.Duration
	}{
		{"of several leases", 30 * time.Second, 100 * time.Second},
		{"of one lease", 30 * time.Second, 30 * time.Second},
		{"of a little more", 30 * time.Second, 31 * time.Second},
		{"of many short leases", 50 * time.Millisecond, 15 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store, spy := memstore.New(), newSpy()
				spy.behind = store
				guard := serialize(t, spy, dedupe.WithLease(test.lease), dedupe.WithMaxHold(test.most))
				began := time.Now()
				r := ask("7").doing(func(ctx context.Context) {
					select {
					case <-ctx.Done():
					case <-time.After(2 * test.most):
						t.Fatal("the handler may hold the key for ever")
					}
					mustMatch(t, context.Cause(ctx), dedupe.ErrLeaseLost, dedupe.ErrHoldTooLong)
					if got := time.Since(began); got >= test.most || got < test.most*19/20 {
						t.Errorf("the handler was cancelled after %v, want shortly before %v", got, test.most)
					}
					time.Sleep(test.most - time.Since(began)) // it hangs
					next := ask("7")
					next.proceeded(t, next.through(guard))
				})
				r.proceeded(t, r.through(guard))
				for _, v := range spy.seen(extend) {
					if end := v.at.Add(v.lasts).Sub(began); end > test.most {
						t.Errorf("a renewal made the lease last until %v after its begin", end)
					}
				}
			})
		})
	}
}

// A handler that asks and asks does not get beyond the maximum hold either.
func TestCheckDoesNotStretchTheMaximumHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const most, margin = time.Minute, 1500 * time.Millisecond // a twentieth of the lease, to be told in
		guard := serialize(t, memstore.New(), dedupe.WithMaxHold(most))
		began := time.Now()
		r := ask("7").doing(func(ctx context.Context) {
			lease, _ := guard.Lease(ctx)
			for rest := most - margin; rest > time.Millisecond; rest = most - margin - time.Since(began) {
				time.Sleep(rest / 2)
				if err := lease.Check(ctx); err != nil {
					t.Fatalf("%v before the end Check says %v", most-time.Since(began), err)
				}
			}
			<-ctx.Done()
			mustMatch(t, context.Cause(ctx), dedupe.ErrHoldTooLong)
			if got := time.Since(began); got != most-margin {
				t.Errorf("the handler was cancelled after %v, want %v", got, most-margin)
			}
		})
		r.proceeded(t, r.through(guard))
	})
}

func TestNoRenewalAfterTheHandler(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			spy := newSpy()
			r := ask("7").doing(lasting(25 * time.Second))
			r.proceeded(t, r.through(guard(t, spy, dedupe.WithLease(30*time.Second))))
			time.Sleep(time.Hour)
			all := spy.verbs()
			if n, last := len(spy.seen(extend)), all[len(all)-1]; n != 2 || last == extend {
				t.Errorf("there were %d renewals, and the last call was for %s", n, last)
			}
		})
	})
}

// A renewal that is on its way when the handler returns is called off and waited for: it must not
// reach the store after the release.
func TestRenewalUnderWayIsJoinedBeforeTheRelease(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			spy := newSpy()
			renewing := false
			spy.intercept(func(ctx context.Context, v visit) error {
				if v.verb == extend {
					renewing = true
					<-ctx.Done()
					time.Sleep(100 * time.Millisecond) // the client library takes its time
					renewing = false
					return errors.Join(dedupe.ErrStoreUnavailable, ctx.Err())
				}
				if renewing {
					t.Errorf("%s was sent while a renewal was under way", v.verb)
				}
				return nil
			}, nil)
			var journal journal
			r := ask("7").doing(lasting(11 * time.Second))
			began := time.Now()
			r.proceeded(t, r.through(guard(t, spy, dedupe.WithLease(30*time.Second), journal.observe())))
			if got := time.Since(began); got != 11100*time.Millisecond {
				t.Errorf("it took %v, want the renewal to be called off at once", got)
			}
			if n := len(journal.seen(dedupe.EventRenewFailed)); n != 0 {
				t.Error("a renewal that was called off was reported as a failure")
			}
		})
	})
}

// Renewal begins with the first of several keys, and the observer hears of it while the request is
// still on its way in.
func TestObserverWhileKeysAreTaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		spy.intercept(func(_ context.Context, v visit) error {
			if v.verb == claim && len(spy.seen(claim)) == 2 {
				time.Sleep(1500 * time.Millisecond)
			}
			if v.verb == extend && len(spy.seen(extend)) == 1 {
				time.Sleep(time.Second)
				return dedupe.ErrStoreUnavailable
			}
			return nil
		}, nil)
		var journal journal
		r := ask("1", "2").doing(func(context.Context) {
			time.Sleep(time.Second)
			synctest.Wait()
		})
		r.proceeded(t, r.through(transfers(t, spy, dedupe.WithLease(3*time.Second), journal.observe())))
		if n := len(journal.seen(dedupe.EventRenewFailed)); n != 1 {
			t.Errorf("the observer was told of %d failures", n)
		}
	})
}
