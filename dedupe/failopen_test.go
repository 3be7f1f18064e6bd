package dedupe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

func TestFailOpenRunsTheHandlerUnguardedInAnOutage(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			spy := newSpy()
			spy.down()
			var journal journal
			open := guard(t, spy, dedupe.WithFailOpen(), journal.observe())
			r := ask("7").doing(func(ctx context.Context) {
				if _, held := dedupe.LeaseFrom(ctx); held {
					t.Error("the handler was told that it holds a lease")
				}
			})
			r.proceeded(t, r.through(open))
			if r.recorded {
				t.Error("the answer was recorded, and nobody is going to keep it")
			}
			decided := journal.seen(dedupe.EventDecided)
			if len(decided) != 1 || !decided[0].Open || decided[0].Outcome != dedupe.StoreUnavailable {
				t.Errorf("the observer was told %+v", decided)
			}
			mustMatch(t, decided[0].Err, errDown)
		})
	})
}

func TestFailClosedIsTheDefault(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			spy := newSpy()
			spy.down()
			r := ask("7")
			refused(t, r.through(guard(t, spy)), dedupe.StoreUnavailable)
			if r.ran != 0 {
				t.Error("the handler ran")
			}
		})
	})
}

func TestFailOpenTakesTheInnerGuardsAlong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broken, healthy := newSpy(), newSpy()
		broken.down()
		r := ask("7")
		r.proceeded(t, r.through(once(t, broken, dedupe.WithFailOpen()), serialize(t, healthy)))
		healthy.sees(t, claim, release)
	})
}

// Nothing but an outage opens a guard.
func TestFailOpenStaysClosed(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
	}{
		{"on an unreadable record", dedupe.ErrRecordUnreadable},
		{"on an unreadable record, though the store calls itself unavailable", errors.Join(dedupe.ErrStoreUnavailable, dedupe.ErrRecordUnreadable)},
		{"on an error that a store must not return", errDown},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachGuard(t, func(t *testing.T, guard build) {
				bubble(t, func(t *testing.T) {
					spy := newSpy()
					spy.intercept(func(context.Context, visit) error { return test.err }, nil)
					r := ask("7")
					if err := r.through(guard(t, spy, dedupe.WithFailOpen())); err == nil || r.ran != 0 {
						t.Errorf("the handler ran %d times, with the error %v", r.ran, err)
					}
				})
			})
		})
	}
	t.Run("on a conflict", func(t *testing.T) {
		spy := newSpy().saying(dedupe.Claimed{Status: dedupe.StatusHeld})
		refused(t, ask("7").through(serialize(t, spy, dedupe.WithFailOpen())), dedupe.Locked)
	})
	t.Run("on an answer that cannot be read", func(t *testing.T) {
		spy := newSpy().saying(dedupe.Claimed{Status: dedupe.StatusCompleted, Answer: []byte("?")})
		r := ask("7")
		r.replay = func([]byte) error { return errDown }
		refused(t, r.through(once(t, spy, dedupe.WithFailOpen())), dedupe.AnswerUnavailable)
	})
}

// A client that hangs up makes the store fail, and is no outage.
func TestFailOpenStaysClosedWhenTheClientIsGone(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			ctx, hangUp := context.WithCancel(t.Context())
			hangUp()
			r := ask("7").with(ctx)
			err := r.through(guard(t, newSpy(), dedupe.WithFailOpen()))
			refused(t, err, dedupe.StoreUnavailable)
			mustMatch(t, err, context.Canceled)
			if r.ran != 0 {
				t.Error("the handler ran")
			}
		})
	})
}

// A guard that was closed while a request waited for its key is no outage either.
func TestFailOpenStaysClosedWhenTheGuardIs(t *testing.T) {
	for _, test := range []struct {
		name  string
		claim func(context.Context, visit) error
	}{
		{"and the claim is cut off", func(ctx context.Context, _ visit) error {
			<-ctx.Done()
			return errors.Join(dedupe.ErrStoreUnavailable, ctx.Err())
		}},
		{"and the claim is granted all the same", func(ctx context.Context, _ visit) error {
			<-ctx.Done()
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachGuard(t, func(t *testing.T, guard build) {
				bubble(t, func(t *testing.T) {
					spy := newSpy()
					spy.intercept(func(ctx context.Context, v visit) error {
						if v.verb == claim {
							return test.claim(ctx, v)
						}
						return nil
					}, nil)
					spy.behind = deaf{spy.behind}
					open := guard(t, spy, dedupe.WithFailOpen())
					r := ask("7")
					result := r.start(open)
					synctest.Wait()

					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if open.Close(ctx) == nil {
						t.Error("Close did not see the request")
					}
					refused(t, <-result, dedupe.StoreUnavailable)
					if r.ran != 0 {
						t.Error("the handler ran after Close")
					}
				})
			})
		})
	}
}

// deaf is a store that takes no notice of contexts.
type deaf struct{ dedupe.Store }

func (d deaf) Claim(_ context.Context, c dedupe.Claim) (dedupe.Claimed, error) {
	return d.Store.Claim(context.Background(), c)
}
