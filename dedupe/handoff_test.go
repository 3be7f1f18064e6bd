package dedupe_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

func TestHandOffCostsNoCommand(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		guard := serialize(t, stores[0], dedupe.WithWait(time.Minute))
		var s turns
		allProceeded(t, s.arrive(t, guard, time.Second, "a", "b", "c", "d", "e"))
		s.were(t, "a", "b", "c", "d", "e")
		// Nobody waited when a got it: so b asks the store, in case that somebody waits elsewhere.
		stores[0].sees(t, claim, claim, release)
		if claims := stores[0].seen(claim); claims[1].claim.Yields != claims[0].holder.Token {
			t.Error("the second claim does not end the first one's lease")
		}
	})
}

func TestHandOffsPerGrantAreBounded(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		guard := serialize(t, stores[0], dedupe.WithWait(time.Minute), dedupe.WithMaxWaiters(1000))
		var s turns
		names := make([]string, 1+2*dedupe.FencesPerGrant)
		for i := range names {
			names[i] = fmt.Sprint(i)
		}
		allProceeded(t, s.arrive(t, guard, time.Millisecond, names...))
		s.were(t, names...)
		stores[0].sees(t, claim, claim, claim, release)
		if rise := s.fences[dedupe.FencesPerGrant] - s.fences[1]; rise >= dedupe.FencesPerGrant {
			t.Errorf("%d fences of one grant were used", rise+1)
		}
	})
}

// A handler that takes no time at all leaves fences no room below the store's clock.
func TestFencesStayBelowTheTime(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		guard := serialize(t, stores[0], dedupe.WithWait(time.Minute))
		var s turns
		first := s.arrive(t, guard, time.Second, "a")
		rest := s.arrive(t, guard, 0, "b", "c", "d")
		allProceeded(t, first, rest)
		s.were(t, "a", "b", "c", "d")
		stores[0].sees(t, claim, claim, claim, claim, release)
	})
}

func TestProcessesTakeTurns(t *testing.T) {
	atGates(t, 2, func(t *testing.T, stores []*spy) {
		here := serialize(t, stores[0], dedupe.WithWait(time.Minute))
		there := serialize(t, stores[1], dedupe.WithWait(time.Minute))
		var s turns
		first := s.arrive(t, here, time.Second, "a0", "a1", "a2")
		second := s.arrive(t, there, time.Second, "b1", "b2", "b3")
		time.Sleep(1500 * time.Millisecond) // b1 runs
		third := s.arrive(t, there, time.Second, "b4")
		fourth := s.arrive(t, here, time.Second, "a3")
		allProceeded(t, first, second, third, fourth)
		s.were(t, "a0", "b1", "b2", "b3", "a1", "a2", "a3", "b4")
	})
}

func TestHoldersThatPanicOrExitHandOn(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		guard := serialize(t, stores[0], dedupe.WithWait(time.Minute))
		var s turns
		first := s.arrive(t, guard, time.Second, "a", "b")
		for _, end := range []func(){func() { panic(errJob) }, runtime.Goexit} {
			go func() {
				defer func() { _ = recover() }()
				_ = ask("7").doing(func(context.Context) { time.Sleep(time.Second); end() }).through(guard)
			}()
			synctest.Wait()
		}
		last := s.arrive(t, guard, time.Second, "e")
		allProceeded(t, first, last)
		s.were(t, "a", "b", "e")
		stores[0].sees(t, claim, claim, release)
	})
}

func TestCompletionAnswersAllThatWait(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		guard := once(t, stores[0], dedupe.WithWait(time.Minute))
		holder := ask("7").answering("first").doing(lasting(time.Second))
		result := holder.start(guard)
		synctest.Wait()
		var waiters []*request
		var results []<-chan error
		for range 5 {
			w := ask("7")
			waiters, results = append(waiters, w), append(results, w.start(guard))
		}
		holder.proceeded(t, <-result)
		for i, w := range waiters {
			w.wasReplayed(t, <-results[i], "first")
		}
		stores[0].sees(t, claim, complete)
	})
}

func TestOneTakesOverFromOneThatFailed(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		guard := once(t, stores[0], dedupe.WithWait(time.Minute))
		var results []<-chan error
		var requests []*request
		for range 6 {
			r := ask("7").answering("kept").doing(lasting(time.Second))
			if len(requests) < 3 {
				r.deciding(dedupe.VerdictRelease)
			}
			requests, results = append(requests, r), append(results, r.start(guard))
			synctest.Wait()
		}
		for i, r := range requests {
			if i < 4 {
				r.proceeded(t, <-results[i])
			} else {
				r.wasReplayed(t, <-results[i], "kept")
			}
		}
		stores[0].sees(t, claim, claim, complete)
	})
}

// Until the store knows of the answer, the key is held, and this process knows.
func TestRepeatsWhileTheAnswerIsNotSaved(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		patient, guard := once(t, stores[0], dedupe.WithWait(time.Minute)), once(t, stores[0])
		stores[0].failing(complete)
		holder := ask("7").answering("first").doing(lasting(time.Second))
		result := holder.start(guard)
		synctest.Wait()
		waiter := ask("7")
		waited := waiter.start(patient)
		holder.proceeded(t, <-result)

		refused(t, ask("7").through(guard), dedupe.InFlight)
		other := ask("7")
		other.payload.Body = []byte("other")
		refused(t, other.through(guard), dedupe.KeyReused)
		if n := len(stores[0].seen(claim)); n != 1 {
			t.Errorf("the store saw %d claims", n)
		}
		time.Sleep(5 * time.Second)
		stores[0].up()
		waiter.wasReplayed(t, <-waited, "first")
		repeat := ask("7")
		repeat.wasReplayed(t, repeat.through(guard), "first")
	})
}

func TestLeaseLostUnderAHolderThatOthersWaitFor(t *testing.T) {
	for _, test := range []struct {
		name    string
		handler func(context.Context)
		after   time.Duration
	}{
		{"that returns", untilCancelled, 28500 * time.Millisecond},
		{"that goes on", lasting(time.Minute), 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			atGates(t, 1, func(t *testing.T, stores []*spy) {
				guard := serialize(t, stores[0], dedupe.WithWait(time.Minute))
				stores[0].failing(extend)
				began := time.Now()
				holder := ask("7").doing(test.handler)
				result := holder.start(guard)
				synctest.Wait()
				var s turns
				rest := s.arrive(t, guard, time.Second, "b", "c")
				allProceeded(t, rest)
				if took := time.Since(began); took != test.after+2*time.Second {
					t.Errorf("the second had it after %v, want after %v", took-2*time.Second, test.after)
				}
				holder.proceeded(t, <-result)
				s.were(t, "b", "c")
			})
		})
	}
}

func TestHandedOnLeaseIsRenewed(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		guard := serialize(t, stores[0], dedupe.WithWait(5*time.Minute))
		var s turns
		first := s.arrive(t, guard, time.Second, "a", "b")
		long := s.arrive(t, guard, 65*time.Second, "c")
		allProceeded(t, first, long)
		s.were(t, "a", "b", "c")
		if n := len(stores[0].seen(extend)); n < 6 || n > 7 {
			t.Errorf("it was renewed %d times in 65s", n)
		}
		stores[0].sees(t, append([]verb{claim, claim}, append(slices.Repeat([]verb{extend}, len(stores[0].seen(extend))), release)...)...)
	})
}

func TestHandedOnLeaseIsLost(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		guard := serialize(t, stores[0], dedupe.WithWait(5*time.Minute))
		stores[0].intercept(func(_ context.Context, v visit) error {
			if v.verb == extend {
				return dedupe.ErrLeaseLost
			}
			return nil
		}, nil)
		var s turns
		first := s.arrive(t, guard, time.Second, "a", "b")
		began := time.Now()
		r := ask("7").doing(func(ctx context.Context) {
			<-ctx.Done()
			mustMatch(t, context.Cause(ctx), dedupe.ErrLeaseLost)
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("it was told after %v", took)
			}
		})
		r.proceeded(t, r.through(guard))
		allProceeded(t, first)
	})
}

func TestMaximumHoldCountsForEachHolder(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		guard := serialize(t, stores[0], dedupe.WithWait(time.Minute),
			dedupe.WithLease(3*time.Second), dedupe.WithMaxHold(5*time.Second))
		var s turns
		some := s.arrive(t, guard, 4*time.Second, "a", "b", "c")
		var hung time.Duration
		r := ask("7").doing(func(ctx context.Context) {
			began := time.Now()
			<-ctx.Done()
			hung = time.Since(began)
			mustMatch(t, context.Cause(ctx), dedupe.ErrHoldTooLong)
		})
		r.proceeded(t, r.through(guard))
		allProceeded(t, some)
		s.were(t, "a", "b", "c")
		if hung < 4500*time.Millisecond || hung > 5*time.Second {
			t.Errorf("it held for %v", hung)
		}
	})
}

func TestTransfersHandOn(t *testing.T) {
	atGates(t, 2, func(t *testing.T, stores []*spy) {
		here := transfers(t, stores[0], dedupe.WithWait(10*time.Minute))
		there := transfers(t, stores[1], dedupe.WithWait(10*time.Minute))
		var accounts [3]turns
		var results []<-chan error
		for i := range 60 {
			from, to := i%3, (i+1+i/3%2)%3
			guard := []*dedupe.Guard{here, there}[i/6%2]
			r := ask(fmt.Sprint(from), fmt.Sprint(to)).doing(func(ctx context.Context) {
				accounts[from].of(t, "", 0)(context.Background())
				accounts[to].of(t, "", time.Millisecond)(ctx)
			})
			results = append(results, r.start(guard))
		}
		allProceeded(t, results)
	})
}

func TestCloseWhileSomeWait(t *testing.T) {
	atGates(t, 1, func(t *testing.T, stores []*spy) {
		guard, other := serialize(t, stores[0], dedupe.WithWait(time.Minute)), serialize(t, stores[0], dedupe.WithWait(time.Minute))
		holder := ask("7").doing(untilCancelled)
		result := holder.start(guard)
		synctest.Wait()
		var waiters []<-chan error
		for range 3 {
			waiters = append(waiters, ask("7").start(guard))
			synctest.Wait()
		}
		survivor := ask("7")
		survived := survivor.start(other)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := guard.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close returned %v", err)
		}
		for _, w := range waiters {
			err := <-w
			refused(t, err, dedupe.StoreUnavailable)
			mustMatch(t, err, dedupe.ErrClosed)
		}
		holder.proceeded(t, <-result)
		survivor.proceeded(t, <-survived)
	})
}

// A guard that is closed while its handler hands the key on must not release it under the next one.
func TestCloseWhileTheKeyIsHandedOn(t *testing.T) {
	for range 200 {
		atGates(t, 1, func(t *testing.T, stores []*spy) {
			options := []dedupe.Option{dedupe.WithWait(time.Minute)}
			closing, other := serialize(t, stores[0], options...), serialize(t, stores[0], options...)
			first := ask("7").doing(lasting(time.Second)).start(closing)
			synctest.Wait()
			// While its renewal is on its way, the lease has ended and is not handed on yet.
			second := ask("7").doing(lasting(11 * time.Second)).start(closing)
			synctest.Wait()
			third := ask("7").doing(func(ctx context.Context) {
				time.Sleep(time.Second)
				if lease, ok := dedupe.LeaseFrom(ctx); !ok || lease.Check(ctx) != nil {
					t.Error("the key is not its own")
				}
			}).start(other)
			stores[0].intercept(func(_ context.Context, v visit) error {
				if v.verb == extend {
					time.Sleep(2500 * time.Millisecond)
				}
				return nil
			}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 12500*time.Millisecond)
			defer cancel()
			_ = closing.Close(ctx)
			stores[0].up()
			allProceeded(t, []<-chan error{first, second, third})
		})
	}
}
