package dedupe_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

// However a handler ends, its keys are settled once, and a retry runs unless it was answered.
func TestSettleHoweverTheHandlerEnds(t *testing.T) {
	boom := &struct{ text string }{"boom"}
	for _, end := range []struct {
		name    string
		handler func(context.Context)
		panics  any
		kept    bool
	}{
		{"return", nil, nil, true},
		{"panic", func(context.Context) { panic(boom) }, boom, false},
		{"panic with ErrAbortHandler", func(context.Context) { panic(http.ErrAbortHandler) }, http.ErrAbortHandler, false},
		{"Goexit", func(context.Context) { runtime.Goexit() }, nil, false},
	} {
		t.Run(end.name, func(t *testing.T) {
			spy := newSpy()
			onlyOnce, account := once(t, spy), serialize(t, spy)
			ended, panicked := make(chan struct{}), any(nil)
			go func() {
				defer close(ended)
				defer func() { panicked = recover() }()
				_ = ask("7").doing(end.handler).through(onlyOnce, account)
			}()
			<-ended
			if panicked != end.panics {
				t.Errorf("the panic came out as %v, want %v", panicked, end.panics)
			}
			if end.kept {
				spy.sees(t, claim, claim, release, complete)
			} else {
				spy.sees(t, claim, claim, release, release)
			}

			retry := ask("7")
			err := retry.through(onlyOnce, account)
			if end.kept {
				retry.wasReplayed(t, err, "answer")
			} else {
				retry.proceeded(t, err)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		name    string
		verdict dedupe.Verdict
		check   func(*request, error)
	}{
		{"release", dedupe.VerdictRelease, func(r *request, err error) { r.proceeded(t, err) }},
		{"keep", dedupe.VerdictKeep, func(r *request, err error) { r.wasReplayed(t, err, "answer") }},
		{"tombstone", dedupe.VerdictTombstone, func(_ *request, err error) { refused(t, err, dedupe.AnswerUnavailable) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			spy := newSpy()
			guard := once(t, spy, dedupe.WithRetention(time.Minute))
			first, repeat := ask("7").deciding(test.verdict), ask("7")
			first.proceeded(t, first.through(guard))
			test.check(repeat, repeat.through(guard))
			for _, v := range spy.seen(complete) {
				if v.lasts != time.Minute {
					t.Errorf("the answer is kept for %v, want the retention", v.lasts)
				}
			}
		})
	}
}

// An adapter that fails to encode the answer leaves nothing behind that could be replayed.
func TestAnswerThatPanicsReleasesTheKey(t *testing.T) {
	spy := newSpy()
	guard := once(t, spy)
	r := ask("7")
	r.answer = func() ([]byte, dedupe.Verdict) { panic("cannot encode") }
	func() {
		defer func() {
			if got := recover(); got != "cannot encode" {
				t.Errorf("the panic came out as %v", got)
			}
		}()
		_ = r.through(guard)
	}()
	spy.sees(t, claim, release)
	retry := ask("7")
	retry.proceeded(t, retry.through(guard))
}

// A client that hangs up costs neither the answer nor the key.
func TestSettleAfterTheClientHasGone(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			spy := newSpy()
			g := guard(t, spy)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r := ask("7").with(ctx).doing(untilCancelled)
			r.proceeded(t, r.through(g))
			for _, v := range spy.seen(complete, release) {
				if v.cause != nil {
					t.Errorf("%s was sent with a dead context: %v", v.verb, v.cause)
				}
			}
			if err := ask("7").through(g); err != nil {
				t.Errorf("the next request was turned away: %v", err)
			}
		})
	})
}

func TestSaveFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		var journal journal
		guard := once(t, spy, journal.observe())
		spy.failing(complete)
		first := ask("7").answering("first")
		began := time.Now()
		first.proceeded(t, first.through(guard)) // the client gets its real answer
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the client had to wait for %v", waited)
		}

		time.Sleep(10 * time.Second)
		refused(t, ask("7").through(guard), dedupe.InFlight)
		if n := len(journal.seen(dedupe.EventSettled)); n != 0 {
			t.Error("the observer was told that the store knows")
		}

		spy.up()
		time.Sleep(2 * time.Second)
		repeat := ask("7")
		repeat.wasReplayed(t, repeat.through(guard), "first")
		if n := len(journal.seen(dedupe.EventSettled)); n != 1 {
			t.Errorf("the observer was told %d times that the store knows", n)
		}
		failures := journal.seen(dedupe.EventSettleFailed)
		if len(failures) < 3 || len(failures) > 20 {
			t.Errorf("saving was tried %d times in vain, want a few in 10s", len(failures))
		}
		mustMatch(t, failures[0].Err, errDown)
	})
}

func TestReleaseFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		guard := transfers(t, spy)
		spy.failing(release)
		first := ask("1", "2")
		first.proceeded(t, first.through(guard))
		time.Sleep(5 * time.Second)
		refused(t, ask("1", "2").through(guard), dedupe.Locked)
		spy.up()
		time.Sleep(3 * time.Second)
		next := ask("1", "2")
		next.proceeded(t, next.through(guard))
	})
}

// An outage that outlasts the lease: the engine gives up when the lease is over. Should one of its
// goroutines stay, the bubble reports it.
func TestSettlingIsGivenUpWithTheLease(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			spy, journal := newSpy(), &journal{}
			g := guard(t, spy, dedupe.WithLease(30*time.Second), journal.observe())
			r := ask("7").doing(lasting(5 * time.Second))
			spy.failing(complete, release)
			began := time.Now()
			r.proceeded(t, r.through(g))
			time.Sleep(time.Hour)

			attempts := spy.seen(complete, release)
			last := attempts[len(attempts)-1].at.Sub(began)
			if last < 27*time.Second || last > 30*time.Second {
				t.Errorf("the last attempt was after %v, want shortly before the lease was over", last)
			}
			if len(attempts) > 40 {
				t.Errorf("there were %d attempts", len(attempts))
			}
			if settled := journal.seen(dedupe.EventSettled); len(settled) != 1 || !errors.Is(settled[0].Err, dedupe.ErrStoreUnavailable) {
				t.Errorf("the observer was told %v", settled)
			}
			spy.up()
			next := ask("7")
			next.proceeded(t, next.through(g))
		})
	})
}

// What trying again cannot mend is not tried again.
func TestSettlingIsNotRepeatedInVain(t *testing.T) {
	for _, err := range []error{dedupe.ErrLeaseLost, dedupe.ErrRecordUnreadable} {
		eachGuard(t, func(t *testing.T, guard build) {
			bubble(t, func(t *testing.T) {
				spy := newSpy()
				spy.intercept(func(_ context.Context, v visit) error {
					if v.verb != claim {
						return err
					}
					return nil
				}, nil)
				r := ask("7")
				r.proceeded(t, r.through(guard(t, spy)))
				time.Sleep(time.Minute)
				if n := len(spy.seen(complete, release)); n != 1 {
					t.Errorf("the store was told %d times", n)
				}
			})
		})
	}
}

// An owner that comes back late gets its own answer to its own client, and changes nothing for its
// successor.
func TestLateOwner(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, cutOff := memstore.New(), newSpy()
		cutOff.behind = store
		late := ask("7").answering("late").doing(func(context.Context) {
			cutOff.failing(extend)
			time.Sleep(time.Minute)
			successor := ask("7").answering("successor")
			successor.proceeded(t, successor.through(once(t, store)))
			cutOff.up()
		})
		late.proceeded(t, late.through(once(t, cutOff)))
		repeat := ask("7")
		repeat.wasReplayed(t, repeat.through(once(t, store)), "successor")
	})
}

// A lease that the process gave up, but that nobody has taken over, still saves its answer.
func TestAnswerOfALeaseThatIsOverOnlyLocally(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		guard := once(t, spy, dedupe.WithLease(20*time.Second))
		r := ask("7").doing(func(ctx context.Context) {
			spy.failing(extend)
			<-ctx.Done()
		})
		r.proceeded(t, r.through(guard))
		repeat := ask("7")
		repeat.wasReplayed(t, repeat.through(guard), "answer")
	})
}

func TestCrashPolicies(t *testing.T) {
	const lease, retention = 30 * time.Second, time.Hour
	for _, test := range []struct {
		name   string
		policy dedupe.CrashPolicy
		lapse  time.Duration
		after  func(*testing.T, *request, error) // of a repeat a minute after the crash
	}{
		{"take over", dedupe.CrashTakeOver, 0, func(t *testing.T, r *request, err error) { r.proceeded(t, err) }},
		{"hold", dedupe.CrashHold, retention, func(t *testing.T, _ *request, err error) {
			refusal := refused(t, err, dedupe.InFlight)
			if want := lease + retention - time.Minute; refusal.RetryAfter != want {
				t.Errorf("RetryAfter is %v, want the rest of the record's time, %v", refusal.RetryAfter, want)
			}
		}},
		{"report", dedupe.CrashReport, retention, func(t *testing.T, _ *request, err error) {
			mustMatch(t, err, dedupe.ErrUncertain)
			refused(t, err, dedupe.Uncertain)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store, dying := memstore.New(), newSpy()
				dying.behind = store
				policy, kept := dedupe.WithCrashPolicy(test.policy), dedupe.WithRetention(retention)
				dying.failing(extend, complete, release) // the process never speaks to the store again
				crashed := ask("7")
				crashed.proceeded(t, crashed.through(once(t, dying, policy, kept)))
				if got := dying.seen(claim)[0].claim.Lapse; got != test.lapse {
					t.Errorf("the record stays for %v after the lease, want %v", got, test.lapse)
				}

				guard := once(t, store, policy, kept)
				refused(t, ask("7").through(guard), dedupe.InFlight)
				time.Sleep(time.Minute)
				repeat := ask("7")
				test.after(t, repeat, repeat.through(guard))
				if test.lapse == 0 {
					return
				}
				time.Sleep(lease + retention - time.Minute)
				late := ask("7")
				late.proceeded(t, late.through(guard))
			})
		})
	}
}
