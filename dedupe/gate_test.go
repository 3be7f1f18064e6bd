package dedupe_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// That the first one's client left says nothing about the store.
func TestFrontThatLeavesWhileItAsks(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		atGates(t, 1, func(t *testing.T, stores []*spy) {
			g := guard(t, stores[0])
			stores[0].holding(claim, nil)
			ctx, hangUp := context.WithCancel(t.Context())
			first := ask("7").with(ctx).start(g)
			synctest.Wait()
			second := ask("7").doing(lasting(time.Second))
			result := second.start(g)
			synctest.Wait()
			third := ask("7").start(g)
			undecided(t, first, result, third)
			hangUp()
			mustMatch(t, <-first, context.Canceled)
			mustMatch(t, <-third, dedupe.ErrConflict)
			second.proceeded(t, <-result)
		})
	})
}

// The place in the store's line is the process's: it stays when the one at the front leaves.
func TestFrontThatLeavesTheLine(t *testing.T) {
	atGates(t, 3, func(t *testing.T, stores []*spy) {
		here := serialize(t, stores[0], dedupe.WithWait(time.Minute))
		brief := serialize(t, stores[0], dedupe.WithWait(2*time.Second))
		there, holders := serialize(t, stores[1], dedupe.WithWait(time.Minute)), serialize(t, stores[2])
		var s turns
		holder := s.arrive(t, holders, 5*time.Second, "holder")
		ctx, hangUp := context.WithCancel(t.Context())
		left := ask("7").with(ctx).start(here)
		synctest.Wait()
		impatient := s.arrive(t, brief, time.Second, "brief")
		first := s.arrive(t, here, time.Second, "a1", "a2")
		second := s.arrive(t, there, time.Second, "b1")
		time.Sleep(time.Second)
		hangUp()
		mustMatch(t, <-left, dedupe.ErrConflict, context.Canceled)
		refused(t, <-impatient[0], dedupe.Locked)
		allProceeded(t, holder, first, second)
		s.were(t, "holder", "a1", "a2", "b1")
		for _, v := range stores[0].seen(claim) {
			if v.holder.Token != stores[0].seen(claim)[0].holder.Token {
				t.Error("the place was given up")
			}
		}
	})
}

func TestLastThatLeavesTakesThePlaceAlong(t *testing.T) {
	atGates(t, 2, func(t *testing.T, stores []*spy) {
		holder := serialize(t, stores[1])
		brief := serialize(t, stores[0], dedupe.WithWait(2*time.Second))
		var s turns
		held := s.arrive(t, holder, 5*time.Second, "holder")
		waiters := s.arrive(t, brief, time.Second, "a1", "a2")
		for _, w := range waiters {
			refused(t, <-w, dedupe.Locked)
		}
		synctest.Wait()
		if n := len(stores[0].seen(release)); n != 1 {
			t.Errorf("the place was taken out %d times", n)
		}
		allProceeded(t, held)
		if verbs := stores[1].verbs(); !slices.Equal(verbs, []verb{claim, release}) {
			t.Errorf("the holder's store saw %v", verbs)
		}
		next := ask("7")
		next.proceeded(t, next.through(holder))
	})
}

func TestOneInTheMiddleThatLeavesHoldsNobodyUp(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		guard := serialize(t, stores[0], dedupe.WithWait(time.Minute))
		var s turns
		some := s.arrive(t, guard, time.Second, "a", "b")
		ctx, hangUp := context.WithCancel(t.Context())
		left := ask("7").with(ctx).start(guard)
		synctest.Wait()
		rest := s.arrive(t, guard, time.Second, "d", "e")
		hangUp()
		began := time.Now()
		mustMatch(t, <-left, dedupe.ErrConflict, context.Canceled)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it left after %v", waited)
		}
		allProceeded(t, some, rest)
		s.were(t, "a", "b", "d", "e")
	})
}

// A client that hangs up at the moment at which its turn comes costs the others nothing.
func TestOneThatLeavesWhenItsTurnComes(t *testing.T) {
	for _, other := range []int{0, 1} { // the holder is of the same process, or of another
		for range 100 {
			atGates(t, 2, func(t *testing.T, stores []*spy) {
				guard := serialize(t, stores[0], dedupe.WithWait(time.Minute))
				began := time.Now()
				holder := ask("7").doing(lasting(time.Second)).start(serialize(t, stores[other]))
				synctest.Wait()
				var results []<-chan error
				for range 3 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					results = append(results, ask("7").with(ctx).start(guard))
					synctest.Wait()
				}
				last := ask("7")
				last.proceeded(t, last.through(guard))
				if took := time.Since(began); took > time.Second+soon {
					t.Errorf("the last had it after %v", took)
				}
				for _, result := range results {
					if err := <-result; err != nil {
						mustMatch(t, err, context.DeadlineExceeded)
					}
				}
				allProceeded(t, []<-chan error{holder})
			})
		}
	}
}

// What a claim is told may come before its answer.
func TestWordsThatOvertakeTheAnswer(t *testing.T) {
	atGates(t, 2, func(t *testing.T, stores []*spy) {
		there, here := once(t, stores[1]), once(t, stores[0], dedupe.WithWait(time.Minute))
		goOn := make(chan struct{})
		holder := ask("7").answering("first").doing(func(context.Context) { <-goOn })
		result := holder.start(there)
		synctest.Wait()
		stores[0].intercept(nil, func(_ context.Context, v visit) error {
			if v.verb == claim && len(stores[0].seen(claim)) == 1 { // it is queued, and does not know yet
				close(goOn)
				holder.proceeded(t, <-result)
			}
			return nil
		})
		began := time.Now()
		waiter := ask("7")
		waiter.wasReplayed(t, waiter.through(here), "first")
		if waited := time.Since(began); waited > soon {
			t.Errorf("it had the answer after %v", waited)
		}
	})
}

func TestGrantThatOvertakesTheAnswer(t *testing.T) {
	atGates(t, 2, func(t *testing.T, stores []*spy) {
		there, here := serialize(t, stores[1]), serialize(t, stores[0], dedupe.WithWait(time.Minute))
		goOn := make(chan struct{})
		holder := ask("7").doing(func(context.Context) { <-goOn })
		result := holder.start(there)
		synctest.Wait()
		stores[0].intercept(nil, func(_ context.Context, v visit) error {
			if v.verb == claim {
				close(goOn)
				holder.proceeded(t, <-result)
			}
			return nil
		})
		began := time.Now()
		waiter := ask("7")
		waiter.proceeded(t, waiter.through(here))
		if waited := time.Since(began); waited != 0 {
			t.Errorf("its turn came after %v", waited)
		}
		stores[0].sees(t, claim, release)
	})
}

// A grant is for the claim that it was made for, not for the next one at the gate.
func TestGrantToOneThatLeft(t *testing.T) {
	atGates(t, 2, func(t *testing.T, stores []*spy) {
		there, here := serialize(t, stores[1]), serialize(t, stores[0], dedupe.WithWait(time.Minute))
		goOn := make(chan struct{})
		holder := ask("7").doing(func(context.Context) { <-goOn })
		result := holder.start(there)
		synctest.Wait()
		ctx, hangUp := context.WithCancel(t.Context())
		stores[0].intercept(func(_ context.Context, v visit) error {
			if v.verb == release { // so that what was granted to the first stays granted
				return errors.Join(dedupe.ErrStoreUnavailable, errDown)
			}
			return nil
		}, func(ctx context.Context, v visit) error {
			if v.verb != claim || len(stores[0].seen(claim)) > 1 {
				return nil
			}
			<-ctx.Done()
			close(goOn)
			holder.proceeded(t, <-result)
			return errors.Join(dedupe.ErrStoreUnavailable, context.Cause(ctx))
		})
		first := ask("7").with(ctx).start(here)
		synctest.Wait()
		began := time.Now()
		second := ask("7").start(here)
		synctest.Wait()
		hangUp()
		mustMatch(t, <-first, context.Canceled)
		allProceeded(t, []<-chan error{second})
		if waited := time.Since(began); waited < 30*time.Second {
			t.Errorf("it ran after %v, while the first one's lease lasted", waited)
		}
	})
}

// deferring is a store whose grants in the line are short, and told late.
type deferring struct {
	dedupe.Store

	lease, delay time.Duration
}

func (s deferring) Claim(ctx context.Context, c dedupe.Claim) (dedupe.Claimed, error) {
	if c.Waiter != nil {
		c.Waiter = &deferred{c.Waiter, s.lease, s.delay}
	}
	return s.Store.Claim(ctx, c)
}

type deferred struct {
	dedupe.Waiter

	lease, delay time.Duration
}

func (w *deferred) Wake(h dedupe.Holder, g dedupe.Grant) bool {
	if g.Fence != 0 {
		g.Lease = w.lease
	}
	time.AfterFunc(w.delay, func() { w.Waiter.Wake(h, g) })
	return true
}

// A grant is good for as long as its lease certainly lasts; one that came late is confirmed first.
func TestGrantsAreShort(t *testing.T) {
	for _, test := range []struct {
		delay  time.Duration
		claims int
	}{{0, 1}, {time.Second, 1}, {1600 * time.Millisecond, 2}} {
		atGates(t, 2, func(t *testing.T, stores []*spy) {
			stores[0].behind = deferring{stores[0].behind, 2 * time.Second, test.delay}
			there, here := serialize(t, stores[1]), serialize(t, stores[0], dedupe.WithWait(time.Minute))
			var s turns
			first := s.arrive(t, there, time.Second, "a")
			second := s.arrive(t, here, 10*time.Second, "b")
			allProceeded(t, first, second)
			s.were(t, "a", "b")
			if n := len(stores[0].seen(claim)); n != test.claims {
				t.Errorf("told after %v, it claimed %d times, want %d", test.delay, n, test.claims)
			}
			stores[0].behind = stores[1].behind
		})
	}
}

// A short grant outlives a renewal that fails, like any lease.
func TestShortGrantIsRenewedAgain(t *testing.T) {
	atGates(t, 2, func(t *testing.T, stores []*spy) {
		stores[0].behind = deferring{stores[0].behind, 2 * time.Second, 0}
		there, here := serialize(t, stores[1]), serialize(t, stores[0], dedupe.WithWait(time.Minute))
		var s turns
		first := s.arrive(t, there, time.Second, "a")
		stores[0].intercept(func(_ context.Context, v visit) error {
			if v.verb == extend && len(stores[0].seen(extend)) < 2 {
				return errors.Join(dedupe.ErrStoreUnavailable, errDown)
			}
			return nil
		}, nil)
		r := ask("7").doing(func(ctx context.Context) {
			time.Sleep(10 * time.Second)
			if ctx.Err() != nil {
				t.Errorf("the lease is lost: %v", context.Cause(ctx))
			}
		})
		r.proceeded(t, r.through(here))
		allProceeded(t, first)
		stores[0].behind = stores[1].behind
	})
}

// Gates are used again, for other keys, while stores may still have words for the earlier ones.
func TestWordsForGatesThatAreGone(t *testing.T) {
	stores := replicas(2)
	stores[0].behind = deferring{stores[0].behind, time.Minute, 0}
	here := serialize(t, stores[0], dedupe.WithWait(50*time.Microsecond))
	there := serialize(t, stores[1], dedupe.WithWait(time.Minute))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for range 200 {
				guard := []*dedupe.Guard{here, there}[worker%2]
				_ = ask("7").doing(func(context.Context) { time.Sleep(40 * time.Microsecond) }).through(guard)
			}
		})
	}
	all.Wait()
	for i, s := range stores {
		if n := dedupe.Gates(s); n != 0 {
			t.Errorf("%d gates of process %d are left behind", n, i)
		}
	}
}
