package dedupe_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

// soon is how much later than at once a waiter may notice that its turn has come.
const soon = 200 * time.Millisecond

func TestWithoutWaiting(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			spy := newSpy()
			g := guard(t, spy)
			outcome := map[string]dedupe.Outcome{"account": dedupe.Locked, "once": dedupe.InFlight}[g.Name()]
			holder := ask("7").doing(func(context.Context) {
				began := time.Now()
				refused(t, ask("7").through(g), outcome)
				if waited := time.Since(began); waited != 0 {
					t.Errorf("it waited for %v", waited)
				}
			})
			holder.proceeded(t, holder.through(g))
			if n := len(spy.seen(claim)); n != 1 {
				t.Errorf("the store saw %d claims, though this process knows who has the key", n)
			}
		})
	})
}

func TestWaiterGetsTheKeyWhenItIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		guard := serialize(t, memstore.New(), dedupe.WithWait(time.Minute))
		holder := ask("7").doing(lasting(10 * time.Second))
		began := time.Now()
		result := holder.start(guard)
		synctest.Wait()

		waiter := ask("7").doing(func(context.Context) {
			if waited := time.Since(began); waited < 10*time.Second || waited > 10*time.Second+soon {
				t.Errorf("its turn came after %v, want soon after 10s", waited)
			}
		})
		waiter.proceeded(t, waiter.through(guard))
		holder.proceeded(t, <-result)
	})
}

func TestOnceWaiterGetsTheFirstsAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		guard := once(t, memstore.New(), dedupe.WithWait(time.Minute))
		holder := ask("7").answering("first").doing(lasting(10 * time.Second))
		began := time.Now()
		result := holder.start(guard)
		synctest.Wait()

		waiter := ask("7")
		waiter.wasReplayed(t, waiter.through(guard), "first")
		if waited := time.Since(began); waited < 10*time.Second || waited > 10*time.Second+soon {
			t.Errorf("it had the answer after %v, want soon after 10s", waited)
		}
		holder.proceeded(t, <-result)
	})
}

func TestWaiterGivesUpInTime(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			g := guard(t, memstore.New(), dedupe.WithWait(3*time.Second))
			holder := ask("7").doing(lasting(time.Minute))
			result := holder.start(g)
			synctest.Wait()

			began := time.Now()
			err := ask("7").through(g)
			mustMatch(t, err, dedupe.ErrConflict)
			if waited := time.Since(began); waited != 3*time.Second {
				t.Errorf("it gave up after %v, want 3s", waited)
			}
			holder.proceeded(t, <-result)
		})
	})
}

// The key that comes free at the last moment is still taken.
func TestWaiterAsksOnceMoreAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		guard := serialize(t, memstore.New(), dedupe.WithWait(3*time.Second))
		holder := ask("7").doing(lasting(3*time.Second - 1))
		result := holder.start(guard)
		synctest.Wait()
		waiter := ask("7")
		waiter.proceeded(t, waiter.through(guard))
		holder.proceeded(t, <-result)
	})
}

func TestWaiterWhoseClientHangsUp(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			g := guard(t, memstore.New(), dedupe.WithWait(time.Minute))
			holder := ask("7").doing(lasting(30 * time.Second))
			result := holder.start(g)
			synctest.Wait()

			ctx, hangUp := context.WithCancel(t.Context())
			began := time.Now()
			time.AfterFunc(5*time.Second, hangUp)
			waiter := ask("7").with(ctx)
			err := waiter.through(g)
			mustMatch(t, err, dedupe.ErrConflict, context.Canceled)
			if waited := time.Since(began); waited != 5*time.Second {
				t.Errorf("it went on waiting for %v", waited)
			}
			holder.proceeded(t, <-result)
		})
	})
}

func TestMaxWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memstore.New()
		guard := serialize(t, store, dedupe.WithWait(time.Minute), dedupe.WithMaxWaiters(2))
		holder := ask("7").doing(lasting(10 * time.Second))
		elsewhere := ask("8").doing(lasting(10 * time.Second))
		results := []<-chan error{holder.start(guard), elsewhere.start(guard)}
		synctest.Wait()
		for range 2 {
			results = append(results, ask("7").start(guard))
		}
		synctest.Wait()

		began := time.Now()
		refused(t, ask("7").through(guard), dedupe.Locked)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("one too many had to wait for %v", waited)
		}
		other := ask("8") // each key has room of its own
		other.proceeded(t, other.through(guard))
		for _, result := range results {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}

		// And the room is given back.
		again := ask("7").doing(lasting(10 * time.Second))
		result := again.start(guard)
		synctest.Wait()
		waiter := ask("7")
		waiter.proceeded(t, waiter.through(guard))
		again.proceeded(t, <-result)
	})
}

// When the first one dies exactly one waiter takes over, and the others get its answer.
func TestOneWaiterTakesOverFromADeadOwner(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, dying := memstore.New(), newSpy()
		dying.behind = store
		dying.failing(extend, complete, release)
		crashed := ask("7").answering("lost")
		crashed.proceeded(t, crashed.through(once(t, dying)))

		guard := once(t, store, dedupe.WithWait(time.Minute))
		began := time.Now()
		var waiters []*request
		var results []<-chan error
		for range 5 {
			r := ask("7").answering("saved").doing(lasting(time.Second))
			waiters, results = append(waiters, r), append(results, r.start(guard))
		}
		ran := 0
		for i, r := range waiters {
			if err := <-results[i]; err != nil {
				t.Error(err)
			}
			if ran += r.ran; r.ran == 0 && r.replayed != "saved" {
				t.Errorf("a waiter got %q", r.replayed)
			}
		}
		if ran != 1 {
			t.Errorf("%d waiters took over", ran)
		}
		if took := time.Since(began); took < 31*time.Second || took > 31*time.Second+2*soon {
			t.Errorf("it took %v, want soon after the dead owner's lease", took)
		}
	})
}

func TestWaitersRunOneAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		guard := serialize(t, memstore.New(), dedupe.WithWait(time.Minute))
		running := 0
		work := func(context.Context) {
			if running++; running != 1 {
				t.Errorf("%d run at the same time", running)
			}
			time.Sleep(100 * time.Millisecond)
			running--
		}
		var results []<-chan error
		for range 50 {
			results = append(results, ask("7").doing(work).start(guard))
		}
		for _, result := range results {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
	})
}

// An outage while a request waits is an outage, not a conflict.
func TestOutageWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		guard := serialize(t, spy, dedupe.WithWait(time.Minute))
		holder := ask("7").doing(lasting(5 * time.Second))
		result := holder.start(guard)
		synctest.Wait()
		time.AfterFunc(time.Second, func() { spy.failing(claim) })
		refused(t, ask("7").through(guard), dedupe.StoreUnavailable)
		holder.proceeded(t, <-result)
	})
}

// Ten workers, three seconds of patience, one second of work: some get it in turn, the rest are told.
func TestTenWorkersThatWaitForThreeSeconds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		guard := serialize(t, memstore.New(), dedupe.WithWait(3*time.Second))
		began := time.Now()
		var results []<-chan error
		for range 10 {
			results = append(results, ask("7").doing(lasting(time.Second)).start(guard))
		}
		inTurn := 0
		for _, result := range results {
			if err := <-result; err != nil {
				refused(t, err, dedupe.Locked)
				continue
			}
			inTurn++
		}
		if inTurn != 3 && inTurn != 4 {
			t.Errorf("%d had it in turn, want 3, or 4 when nobody lost any time", inTurn)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %v, though nobody waits for more than 3s", took)
		}
	})
}

// Nobody waits for longer than its own time, wherever in line it is.
func TestWaitersGiveUpInTimeWhereverTheyAre(t *testing.T) {
	for _, holder := range []int{0, 1} { // of the same process, or of another
		atGates(t, 2, func(t *testing.T, stores []*spy) {
			result := ask("7").doing(lasting(time.Minute)).start(serialize(t, stores[holder]))
			synctest.Wait()
			waits := []time.Duration{5 * time.Second, 2 * time.Second, 7 * time.Second, 3 * time.Second}
			took := make([]time.Duration, len(waits))
			var all sync.WaitGroup
			for i, wait := range waits {
				guard := serialize(t, stores[0], dedupe.WithWait(wait))
				all.Go(func() {
					began := time.Now()
					refused(t, ask("7").through(guard), dedupe.Locked)
					took[i] = time.Since(began)
				})
				synctest.Wait()
			}
			all.Wait()
			if !slices.Equal(took, waits) {
				t.Errorf("they gave up after %v, want %v", took, waits)
			}
			allProceeded(t, []<-chan error{result})
		})
	}
}

// The one that waits for another process counts too.
func TestMaxWaitersWithTheHolderElsewhere(t *testing.T) {
	atGates(t, 2, func(t *testing.T, stores []*spy) {
		there := serialize(t, stores[1])
		here := serialize(t, stores[0], dedupe.WithWait(time.Minute), dedupe.WithMaxWaiters(2))
		var s turns
		held := s.arrive(t, there, 10*time.Second, "holder")
		ctx, hangUp := context.WithCancel(t.Context())
		left := ask("7").with(ctx).start(here)
		synctest.Wait()
		rest := s.arrive(t, here, time.Second, "a")
		refused(t, ask("7").through(here), dedupe.Locked)
		hangUp()
		mustMatch(t, <-left, context.Canceled)
		rest = append(rest, s.arrive(t, here, time.Second, "b")...) // there is room again
		refused(t, ask("7").through(here), dedupe.Locked)
		allProceeded(t, held, rest)
		s.were(t, "holder", "a", "b")
	})
}

// How long a refused request is told to wait grows with the line before it, up to the lease.
func TestRetryAfterReflectsTheLine(t *testing.T) {
	for _, test := range []struct {
		waiters     int
		held, after time.Duration
	}{
		{0, 0, time.Second},
		{0, 4 * time.Second, time.Second},
		{3, 4 * time.Second, 12 * time.Second},
		{20, 4 * time.Second, 24500 * time.Millisecond}, // what is left of the lease, by this process's clock
		{3, 40 * time.Second, 30 * time.Second},         // the lease was renewed
	} {
		atGates(t, 1, func(t *testing.T, stores []*spy) {
			patient, guard := serialize(t, stores[0], dedupe.WithWait(10*time.Minute)), serialize(t, stores[0])
			results := []<-chan error{ask("7").doing(lasting(time.Minute)).start(guard)}
			synctest.Wait()
			for range test.waiters {
				results = append(results, ask("7").start(patient))
			}
			time.Sleep(test.held)
			refusal := refused(t, ask("7").through(guard), dedupe.Locked)
			if refusal.RetryAfter != test.after {
				t.Errorf("%d wait, and it is held for %v: told to wait for %v, want %v",
					test.waiters, test.held, refusal.RetryAfter, test.after)
			}
			allProceeded(t, results)
		})
	}
}

// The line is reckoned by the one that has the key now, not by those that had it before.
func TestRetryAfterOnceTheKeyWasHandedOn(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		patient, guard := serialize(t, stores[0], dedupe.WithWait(time.Minute)), serialize(t, stores[0])
		var s turns
		results := s.arrive(t, patient, 5*time.Second, "a", "b", "c", "d", "e")
		time.Sleep(12 * time.Second) // c has it
		if refusal := refused(t, ask("7").through(guard), dedupe.Locked); refusal.RetryAfter != 4*time.Second {
			t.Errorf("two wait, and it is held for 2s: told to wait for %v", refusal.RetryAfter)
		}
		allProceeded(t, results)
	})
}

// Leases and lapses are the store's to keep, and it keeps those of the claim: the key is not handed on to
// one that would have claimed it with others.
func TestGuardsWithOtherLeasesClaimForThemselves(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		brief := serialize(t, stores[0], dedupe.WithWait(time.Minute), dedupe.WithLease(2*time.Second))
		long := serialize(t, stores[0], dedupe.WithWait(time.Minute), dedupe.WithLease(time.Hour), dedupe.WithMaxHold(time.Hour))
		var s turns
		first := s.arrive(t, brief, time.Second, "a", "b")
		second := s.arrive(t, long, 10*time.Second, "c")
		third := s.arrive(t, brief, time.Second, "d")
		allProceeded(t, first, second, third)
		s.were(t, "a", "b", "c", "d")
		var leases []time.Duration
		for _, v := range stores[0].seen(claim) {
			leases = append(leases, v.claim.Lease)
		}
		if want := []time.Duration{2 * time.Second, 2 * time.Second, time.Hour, 2 * time.Second}; !slices.Equal(leases, want) {
			t.Errorf("the claims are for %v, want %v", leases, want)
		}
	})
}
