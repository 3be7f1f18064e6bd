package dedupe_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

func TestCloseOfAnIdleGuard(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		store := memstore.New()
		g := guard(t, store)
		served := ask("7")
		served.proceeded(t, served.through(g))
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for _, ctx := range []context.Context{t.Context(), t.Context(), over} {
			if err := g.Close(ctx); err != nil {
				t.Errorf("Close returned %v", err)
			}
		}
		other := ask("8")
		other.proceeded(t, other.through(guard(t, store))) // only this guard is closed
	})
}

func TestClosedGuardRefuses(t *testing.T) {
	for _, options := range [][]dedupe.Option{nil, {dedupe.WithFailOpen()}} {
		eachGuard(t, func(t *testing.T, guard build) {
			spy := newSpy()
			g := guard(t, spy, options...)
			if err := g.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := ask("7")
			err := r.through(g)
			refusal := refused(t, err, dedupe.StoreUnavailable)
			mustMatch(t, err, dedupe.ErrClosed, dedupe.ErrStoreUnavailable)
			if refusal.RetryAfter < time.Second || r.ran != 0 {
				t.Errorf("RetryAfter is %v, and the handler ran %d times", refusal.RetryAfter, r.ran)
			}
			spy.sees(t)
		})
	}
}

func TestClosedGuardRefusesJobs(t *testing.T) {
	for _, guard := range []*dedupe.Guard{serialize(t, newSpy()), jobs(t, newSpy())} {
		if err := guard.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		runs := 0
		err := guard.Run(t.Context(), "7", counting(&runs, nil))
		mustMatch(t, err, dedupe.ErrClosed, dedupe.ErrStoreUnavailable)
		if runs != 0 {
			t.Errorf("%s: the job ran", guard.Name())
		}
	}
}

func TestCloseWaitsForHandlers(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			store := memstore.New()
			g, elsewhere := guard(t, store), guard(t, store)
			r := ask("7").doing(func(ctx context.Context) {
				time.Sleep(40 * time.Second)
				mustMatch(t, ask("7").through(elsewhere), dedupe.ErrConflict) // still guarded, and renewed
				if ctx.Err() != nil {
					t.Errorf("Close cancelled the handler: %v", context.Cause(ctx))
				}
			})
			result := r.start(g)
			synctest.Wait()
			began := time.Now()
			if err := g.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if waited := time.Since(began); waited != 40*time.Second {
				t.Errorf("Close waited for %v, want until the handler had returned", waited)
			}
			r.proceeded(t, <-result)
		})
	})
}

func TestCloseWaitsUntilTheStoreKnows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		g := once(t, spy)
		spy.failing(complete)
		r := ask("7")
		r.proceeded(t, r.through(g))
		time.AfterFunc(5*time.Second, spy.up)
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
		repeat := ask("7")
		repeat.wasReplayed(t, repeat.through(once(t, spy)), "answer")
	})
}

// evicted closes g while three handlers run that take no notice, and calls meanwhile when Close has
// given up on them.
func evicted(t *testing.T, g *dedupe.Guard, meanwhile func()) {
	t.Helper()
	causes := make(chan error, 3)
	var results []<-chan error
	for _, key := range []string{"1", "2", "3"} {
		results = append(results, ask(key).doing(func(ctx context.Context) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			time.Sleep(5 * time.Second)
		}).start(g))
	}
	synctest.Wait()

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	began := time.Now()
	err := g.Close(ctx)
	if waited := time.Since(began); waited != 10*time.Second {
		t.Errorf("Close returned after %v, want with its context", waited)
	}
	mustMatch(t, err, context.DeadlineExceeded)
	if err == nil || !strings.Contains(err.Error(), "3 handlers") {
		t.Errorf("the error does not say how many there were: %v", err)
	}
	for range 3 {
		mustMatch(t, <-causes, dedupe.ErrLeaseLost, dedupe.ErrClosed)
	}
	meanwhile()
	if err := g.Close(t.Context()); err != nil {
		t.Errorf("the second Close, which may wait, returned %v", err)
	}
	for _, result := range results {
		if err := <-result; err != nil {
			t.Error(err)
		}
	}
}

func TestCloseReleasesTheKeysOfASerialize(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memstore.New()
		evicted(t, serialize(t, store), func() {
			next := ask("1").doing(lasting(time.Minute))
			next.proceeded(t, next.through(serialize(t, store)))
		})
		if n := store.Len(); n != 0 {
			t.Errorf("%d records are left", n)
		}
	})
}

// The handler may have done its work: another must not begin it, and its answer counts.
func TestCloseLeavesTheClaimsOfAOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		evicted(t, once(t, spy), func() {
			if n := len(spy.seen(release, complete)); n != 0 {
				t.Errorf("%d claims were given up", n)
			}
			refused(t, ask("1").through(once(t, spy)), dedupe.InFlight)
			time.Sleep(6 * time.Second)
			repeat := ask("1")
			repeat.wasReplayed(t, repeat.through(once(t, spy)), "answer")
		})
	})
}

func TestCloseOfSeveralGuards(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memstore.New()
		quick, slow, idle := serialize(t, store), inDomain(t, store, "order"), once(t, store)
		served := ask("7").doing(lasting(time.Second))
		stuck := ask("7").doing(untilCancelled)
		results := []<-chan error{served.start(quick), stuck.start(slow)}
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		go func() {
			time.Sleep(time.Second / 2)
			for _, g := range []*dedupe.Guard{quick, slow, idle} {
				mustMatch(t, ask("8").through(g), dedupe.ErrClosed) // all at the same time
			}
		}()
		err := dedupe.Close(ctx, slow, quick, idle)
		mustMatch(t, err, context.DeadlineExceeded)
		if err == nil || !strings.Contains(err.Error(), "order: closed with 1 handlers") || strings.Contains(err.Error(), "account") {
			t.Errorf("the error does not say which guard was left: %v", err)
		}
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("it returned after %v", waited)
		}
		served.proceeded(t, <-results[0])
		stuck.proceeded(t, <-results[1])
		if err := dedupe.Close(t.Context()); err != nil {
			t.Errorf("without guards it returned %v", err)
		}
	})
}

func TestCloseEndsRenewal(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			spy := newSpy()
			g := guard(t, spy)
			r := ask("7").doing(lasting(10 * time.Minute))
			result := r.start(g)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
			defer cancel()
			mustMatch(t, g.Close(ctx), context.DeadlineExceeded)
			seen := len(spy.seen(extend))
			r.proceeded(t, <-result)
			if n := len(spy.seen(extend)); seen != 3 || n != seen {
				t.Errorf("there were %d renewals before Close gave up, and %d after", seen, n-seen)
			}
		})
	})
}

// Like the handler's own end, Close calls off a renewal that is under way before it gives a key back.
func TestCloseJoinsTheRenewalUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		var renewing atomic.Bool
		spy.intercept(func(ctx context.Context, v visit) error {
			if v.verb == extend {
				renewing.Store(true)
				<-ctx.Done()
				time.Sleep(100 * time.Millisecond)
				renewing.Store(false)
				return dedupe.ErrStoreUnavailable
			}
			if v.verb == release && renewing.Load() {
				t.Error("the key was given back while a renewal was under way")
			}
			return nil
		}, nil)
		g := serialize(t, spy)
		r := ask("7").doing(lasting(time.Minute))
		result := r.start(g)
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		synctest.Wait()
		mustMatch(t, g.Close(ctx), context.DeadlineExceeded)
		spy.up()
		r.proceeded(t, <-result)
	})
}

func TestCloseEndsDetachedWork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := serialize(t, memstore.New())
		r := ask("7").doing(func(ctx context.Context) {
			detached := dedupe.Detach(ctx)
			<-detached.Done()
			mustMatch(t, context.Cause(detached), dedupe.ErrLeaseLost, dedupe.ErrClosed)
		})
		result := r.start(g)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		mustMatch(t, g.Close(ctx), context.DeadlineExceeded)
		r.proceeded(t, <-result)
	})
}

func TestCloseTurnsWaitersAway(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			store := memstore.New()
			g := guard(t, store, dedupe.WithWait(time.Minute))
			holder := ask("7").doing(lasting(30 * time.Second))
			held := holder.start(guard(t, store))
			synctest.Wait()
			waiter := ask("7")
			result := waiter.start(g)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if g.Close(ctx) == nil {
				t.Error("Close did not see the waiter")
			}
			began := time.Now()
			err := <-result
			refused(t, err, dedupe.StoreUnavailable) // it is no conflict
			mustMatch(t, err, dedupe.ErrClosed)
			if time.Since(began) != 0 || waiter.ran != 0 {
				t.Errorf("the waiter stayed for %v and ran %d times", time.Since(began), waiter.ran)
			}
			holder.proceeded(t, <-held)
		})
	})
}

// Handlers come and go while the guard is closed: nobody is forgotten, nobody is counted twice.
func TestCloseUnderTraffic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := serialize(t, memstore.New())
		var running atomic.Int32
		closed := make(chan struct{})
		var results []<-chan error
		for i := range 100 {
			if i == 50 {
				go func() {
					defer close(closed)
					if err := g.Close(t.Context()); err != nil || running.Load() != 0 {
						t.Errorf("Close returned %v with %d handlers running", err, running.Load())
					}
				}()
				synctest.Wait()
			}
			results = append(results, ask(strconv.Itoa(i)).doing(func(context.Context) {
				running.Add(1)
				time.Sleep(time.Duration(i%7) * 50 * time.Millisecond)
				running.Add(-1)
			}).start(g))
			time.Sleep(10 * time.Millisecond)
		}
		<-closed
		for i, result := range results {
			if err := <-result; (i < 50) != (err == nil) || (i >= 50) != errors.Is(err, dedupe.ErrClosed) {
				t.Errorf("request %d came before request 50, when Close was called: %t; it got %v", i, i < 50, err)
			}
		}
	})
}

// Every handler that is left is told at once, however long the store takes to be told of the first.
func TestCloseTellsAllBeforeItWaitsForTheStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const slow = time.Second
		spy := newSpy()
		guards := []*dedupe.Guard{inDomain(t, spy, "a"), inDomain(t, spy, "b")}
		var told [4]time.Duration
		var began time.Time
		done := make([]<-chan error, len(told))
		for i := range told {
			done[i] = ask(strconv.Itoa(i)).doing(func(ctx context.Context) {
				<-ctx.Done()
				told[i] = time.Since(began)
			}).start(guards[i%2])
		}
		synctest.Wait()
		spy.intercept(func(_ context.Context, v visit) error {
			if v.verb == release {
				time.Sleep(slow)
			}
			return nil
		}, nil)
		began = time.Now()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := dedupe.Close(over, guards...); err == nil || strings.Count(err.Error(), "2 handlers still running") != 2 {
			t.Errorf("Close returned %v", err)
		}
		if took := time.Since(began); took != slow {
			t.Errorf("Close took %v, want %v", took, slow)
		}
		for i := range told {
			<-done[i]
			if told[i] != 0 {
				t.Errorf("handler %d was told after %v", i, told[i])
			}
		}
	})
}
