package dedupe_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

// A holder near its maximum hold may have sent an extension that ends with it. Whoever comes next gets a
// token of its own, which that extension does not concern.
func TestNearTheMaximumHoldTheKeyIsNotHandedOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		guard := serialize(t, spy, dedupe.WithWait(time.Minute), dedupe.WithLease(10*time.Second), dedupe.WithMaxHold(20*time.Second))
		holder := ask("7").doing(lasting(15 * time.Second))
		result := holder.start(guard)
		synctest.Wait()
		waiter := ask("7")
		waiter.proceeded(t, waiter.through(guard))
		holder.proceeded(t, <-result)
		claims := spy.seen(claim)
		if len(claims) != 2 || claims[0].holder.Token == claims[1].holder.Token {
			t.Errorf("the waiter has the holder's token: %d claims", len(claims))
		}
	})
}

// panicking is a store that panics once.
type panicking struct {
	dedupe.Store
	over bool
}

func (s *panicking) Claim(ctx context.Context, c dedupe.Claim) (dedupe.Claimed, error) {
	if !s.over {
		s.over = true
		panic("a bug")
	}
	return s.Store.Claim(ctx, c)
}

// A store that panics costs the request it panics on, and no other.
func TestStorePanics(t *testing.T) {
	guard := serialize(t, &panicking{Store: memstore.New()})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		_ = ask("7").through(guard)
	}()
	r := ask("7")
	r.proceeded(t, r.through(guard))
}

// Who is next in line ends the lease of the holder before it with its own claim. If that fails, the lease is
// ended all the same, however many claims are being taken back in an outage.
func TestClaimThatWasToEndALeaseFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		guard := serialize(t, spy, dedupe.WithWait(time.Minute))
		holder := ask("7").doing(lasting(time.Second))
		result := holder.start(guard)
		synctest.Wait()
		down := errors.Join(dedupe.ErrStoreUnavailable, errDown)
		mine := spy.seen(claim)[0].holder.Digest
		spy.intercept(func(_ context.Context, v visit) error {
			if v.holder.Digest != mine || v.claim.Yields != (dedupe.Token{}) {
				return down
			}
			return nil
		}, nil)
		waiter := ask("7").start(guard)
		time.Sleep(900 * time.Millisecond)
		for i := range 200 { // more than are taken back at a time
			refused(t, ask(strconv.Itoa(1000+i)).through(guard), dedupe.StoreUnavailable)
		}
		refused(t, <-waiter, dedupe.StoreUnavailable)
		holder.proceeded(t, <-result)
		synctest.Wait()
		began := time.Now()
		next := ask("7")
		next.proceeded(t, next.through(guard))
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("the key was free after %v", waited)
		}
	})
}
