package dedupe_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// loseReplies makes the store carry out every claim and say nothing.
func loseReplies(s *spy) {
	s.intercept(nil, func(_ context.Context, v visit) error {
		if v.verb == claim {
			return errors.Join(dedupe.ErrStoreUnavailable, errDown)
		}
		return nil
	})
}

// A claim whose reply is lost may have been carried out. It must not stand in everybody's way for a
// whole lease.
func TestClaimWithUnknownResultIsTakenBack(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		bubble(t, func(t *testing.T) {
			spy := newSpy()
			g := guard(t, spy)
			loseReplies(spy)
			refused(t, ask("7").through(g), dedupe.StoreUnavailable)
			synctest.Wait()
			spy.sees(t, claim, release)
			spy.up()
			next := ask("7")
			next.proceeded(t, next.through(g))
		})
	})
}

func TestClaimIsTakenBackThoughTheClientIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		guard := serialize(t, spy)
		ctx, hangUp := context.WithCancel(t.Context())
		spy.intercept(nil, func(_ context.Context, v visit) error {
			if v.verb == claim {
				hangUp()
				return errors.Join(dedupe.ErrStoreUnavailable, context.Canceled)
			}
			return nil
		})
		refused(t, ask("7").with(ctx).through(guard), dedupe.StoreUnavailable)
		synctest.Wait()
		attempts := spy.seen(release)
		if len(attempts) != 1 || attempts[0].cause != nil {
			t.Fatalf("the claim was taken back as %+v, want once with a live context", attempts)
		}
	})
}

// It is not known until when the outage lasts, so that only the end of the lease is certain.
func TestTakingBackIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		spy.down()
		began := time.Now()
		refused(t, ask("7").through(serialize(t, spy)), dedupe.StoreUnavailable)
		time.Sleep(time.Hour)
		attempts := spy.seen(release)
		if len(attempts) < 3 || len(attempts) > 10 {
			t.Errorf("there were %d attempts, want a few", len(attempts))
		}
		if last := attempts[len(attempts)-1].at.Sub(began); last > 2*time.Second {
			t.Errorf("the last attempt was after %v, want within 2s", last)
		}
	})
}

// In an outage every request leaves a claim to be taken back.
func TestTakingBackIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		guard := serialize(t, spy)
		var running, most atomic.Int32
		spy.intercept(func(ctx context.Context, v visit) error {
			if v.verb == release {
				most.Store(max(most.Load(), running.Add(1)))
				<-ctx.Done()
				running.Add(-1)
			}
			return dedupe.ErrStoreUnavailable
		}, nil)
		outage := func() {
			began := time.Now()
			for range 200 {
				refused(t, ask("7").through(guard), dedupe.StoreUnavailable)
			}
			synctest.Wait()
			if n := running.Load(); n != 64 {
				t.Errorf("%d claims are being taken back, want 64", n)
			}
			time.Sleep(time.Until(began.Add(2 * time.Second)))
			synctest.Wait()
			if n := running.Load(); n != 0 {
				t.Errorf("%d claims are still being taken back after 2s", n)
			}
		}
		outage()
		outage() // there is room again
		if n := most.Load(); n != 64 {
			t.Errorf("%d claims were being taken back at a time, want 64", n)
		}
	})
}
