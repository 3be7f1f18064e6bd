package dedupe_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

func TestSeveralKeysAreTakenInOneOrder(t *testing.T) {
	spy := newSpy()
	guard := transfers(t, spy)
	there, back := ask("1", "2"), ask("2", "1")
	there.proceeded(t, there.through(guard))
	back.proceeded(t, back.through(guard))

	spy.sees(t, claim, claim, release, release, claim, claim, release, release)
	claims, releases := spy.seen(claim), spy.seen(release)
	first, second := claims[0].holder.Digest, claims[1].holder.Digest
	if bytes.Compare(first[:], second[:]) >= 0 {
		t.Error("the keys are not taken in the order of their digests, which all processes share")
	}
	if claims[2].holder.Digest != first || claims[3].holder.Digest != second {
		t.Error("the transfer back takes the keys in another order")
	}
	if releases[0].holder.Digest != second || releases[1].holder.Digest != first {
		t.Error("the keys are not given back in the reverse order")
	}
	for i, c := range claims {
		if releases[i].holder.Token != claims[i^1].holder.Token {
			t.Errorf("claim %d is released with another token: %v, %v", i, c, releases[i^1])
		}
	}
}

func TestAllKeysOrNone(t *testing.T) {
	store := memstore.New()
	guard, account := transfers(t, store), serialize(t, store)
	for _, taken := range []string{"1", "2"} {
		holder := ask(taken).doing(func(context.Context) {
			transfer := ask("1", "2")
			refused(t, transfer.through(guard), dedupe.Locked)
			if transfer.ran != 0 {
				t.Error("the transfer ran with one of two keys")
			}
			if n := store.Len(); n != 1 {
				t.Errorf("%d keys are held, want only the one of the other request", n)
			}
		})
		holder.proceeded(t, holder.through(account))
	}
}

func TestOutageBetweenTwoKeysGivesTheFirstBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, spy := memstore.New(), newSpy()
		spy.behind = store
		spy.intercept(func(_ context.Context, v visit) error {
			if v.verb == claim && len(spy.seen(claim)) == 2 {
				return dedupe.ErrStoreUnavailable
			}
			return nil
		}, nil)
		refused(t, ask("1", "2").through(transfers(t, spy)), dedupe.StoreUnavailable)
		synctest.Wait()
		if n := store.Len(); n != 0 {
			t.Errorf("%d keys are still held", n)
		}
	})
}

func TestCrossingTransfersWithoutWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		guard := transfers(t, memstore.New())
		there, back := ask("1", "2").doing(lasting(time.Second)), ask("2", "1").doing(lasting(time.Second))
		results := []<-chan error{there.start(guard), back.start(guard)}
		var lost []error
		for _, result := range results {
			if err := <-result; err != nil {
				lost = append(lost, err)
			}
		}
		if there.ran+back.ran != 1 || len(lost) != 1 {
			t.Fatalf("%d transfers ran, %d were refused, want one each", there.ran+back.ran, len(lost))
		}
		refused(t, lost[0], dedupe.Locked)
	})
}

func TestCrossingTransfersThatWaitRunInTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		guard := transfers(t, memstore.New(), dedupe.WithWait(time.Minute))
		running := 0
		work := func(context.Context) {
			if running++; running > 1 {
				t.Error("both run at the same time")
			}
			time.Sleep(time.Second)
			running--
		}
		var results []<-chan error
		for i := range 10 {
			from, to := "1", "2"
			if i%2 == 1 {
				from, to = to, from
			}
			results = append(results, ask(from, to).doing(work).start(guard))
		}
		for _, result := range results {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
	})
}

// The patience of WithWait is for the request, not for each of its keys, whichever comes first.
func TestWaitIsSharedByAllKeys(t *testing.T) {
	for _, busy := range [][2]time.Duration{{8 * time.Second, 16 * time.Second}, {16 * time.Second, 8 * time.Second}} {
		bubble(t, func(t *testing.T) {
			store := memstore.New()
			account, guard := serialize(t, store), transfers(t, store, dedupe.WithWait(10*time.Second))
			first, second := ask("1").doing(lasting(busy[0])), ask("2").doing(lasting(busy[1]))
			results := []<-chan error{first.start(account), second.start(account)}
			synctest.Wait()

			began := time.Now()
			refused(t, ask("1", "2").through(guard), dedupe.Locked)
			if waited := time.Since(began); waited != 10*time.Second {
				t.Errorf("it waited for %v, want 10s", waited)
			}
			<-results[0]
			<-results[1]
		})
	}
}

func TestEqualKeysAreOne(t *testing.T) {
	spy := newSpy()
	guard := transfers(t, spy)
	toSelf := ask("1", "1").doing(func(ctx context.Context) {
		lease, _ := guard.Lease(ctx)
		if fence, held := lease.FenceOf("1"); !held || fence != lease.Fence() {
			t.Errorf("FenceOf gives %d (%t), Fence %d", fence, held, lease.Fence())
		}
	})
	toSelf.proceeded(t, toSelf.through(guard))
	spy.sees(t, claim, release)
}

func TestFencesOfSeveralKeys(t *testing.T) {
	spy := newSpy()
	guard := transfers(t, spy)
	for _, keys := range [][]string{{"1", "2"}, {"2", "1"}} {
		transfer := ask(keys...).doing(func(ctx context.Context) {
			lease, _ := guard.Lease(ctx)
			from, heldFrom := lease.FenceOf(keys[0])
			to, heldTo := lease.FenceOf(keys[1])
			if !heldFrom || !heldTo || from == 0 || to == 0 {
				t.Errorf("the fences are %d (%t) and %d (%t)", from, heldFrom, to, heldTo)
			}
			if lease.Fence() != from {
				t.Errorf("Fence is %d, want that of the guard's first key, %d, and not of %q, %d", lease.Fence(), from, keys[1], to)
			}
			if _, held := lease.FenceOf("3"); held {
				t.Error("it claims to hold a key that nobody named")
			}
		})
		// The store counts each key's fences by itself: let them differ.
		other := ask(keys[1])
		other.proceeded(t, other.through(serialize(t, spy)))
		transfer.proceeded(t, transfer.through(guard))
	}
}

// Renewal covers every key, also one that was waited for.
func TestRenewalCoversEveryKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		guard := transfers(t, spy, dedupe.WithLease(3*time.Second))
		transfer := ask("1", "2").doing(func(ctx context.Context) {
			time.Sleep(10 * time.Second)
			if ctx.Err() != nil {
				t.Errorf("the lease was lost: %v", context.Cause(ctx))
			}
			refused(t, ask("1").through(serialize(t, spy)), dedupe.Locked)
			refused(t, ask("2").through(serialize(t, spy)), dedupe.Locked)
		})
		transfer.proceeded(t, transfer.through(guard))
	})
}

// The lease of several keys is that of the one that is free first. A renewal of the first key that
// was sent after the claim of the second says nothing about the second.
func TestDeadlineIsThatOfTheShortestKey(t *testing.T) {
	for _, test := range []struct {
		name  string
		delay time.Duration // of the reply to the renewal
	}{
		{"the renewal is over when the second key is known", 0},
		{"the renewal is still under way", 300 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				spy := newSpy()
				spy.intercept(nil, func(_ context.Context, v visit) error {
					switch {
					case v.verb == extend:
						time.Sleep(test.delay)
					case v.verb == claim && len(spy.seen(claim)) == 2:
						time.Sleep(500 * time.Millisecond) // granted at once, known late
					}
					return nil
				})
				transfer := ask("1", "2").doing(func(ctx context.Context) {
					spy.failing(extend)
					second := spy.seen(claim)[1]
					<-ctx.Done()
					mustMatch(t, context.Cause(ctx), dedupe.ErrLeaseLost)
					if end := second.at.Add(second.lasts); !time.Now().Before(end) {
						t.Errorf("the handler was told %v after the second key was free", time.Since(end))
					}
				})
				transfer.proceeded(t, transfer.through(transfers(t, spy, dedupe.WithLease(time.Second))))
			})
		})
	}
}

// The same after a long wait, when the timer is set for the later deadline of the first key.
func TestDeadlineIsThatOfTheShortestKeyAfterWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		free := time.Now().Add(1150 * time.Millisecond)
		spy.lie = func(c dedupe.Claim) (dedupe.Claimed, bool) {
			second := c.Digest != spy.seen(claim)[0].holder.Digest
			return dedupe.Claimed{Status: dedupe.StatusHeld}, second && time.Now().Before(free)
		}
		spy.intercept(nil, func(_ context.Context, v visit) error {
			if v.verb == claim && !v.at.Before(free) {
				time.Sleep(500 * time.Millisecond) // granted at once, known late
			}
			return nil
		})
		transfer := ask("1", "2").doing(func(ctx context.Context) {
			spy.failing(extend)
			claims := spy.seen(claim)
			second := claims[len(claims)-1]
			<-ctx.Done()
			if end := second.at.Add(second.lasts); !time.Now().Before(end) {
				t.Errorf("the handler was told %v after the second key was free", time.Since(end))
			}
		})
		guard := transfers(t, spy, dedupe.WithLease(time.Second), dedupe.WithWait(time.Minute))
		transfer.proceeded(t, transfer.through(guard))
	})
}

// A key that is lost while a later one is asked for leaves the request with nothing, and is no
// outage that would open the guard.
func TestKeyLostWhileTheNextIsAskedFor(t *testing.T) {
	for _, mode := range []struct {
		name    string
		options []dedupe.Option
	}{{"fail closed", nil}, {"fail open", []dedupe.Option{dedupe.WithFailOpen()}}} {
		t.Run(mode.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				spy := newSpy()
				spy.behind = deaf{spy.behind}
				spy.intercept(func(_ context.Context, v visit) error {
					switch {
					case v.verb == extend:
						return dedupe.ErrLeaseLost
					case len(spy.seen(claim)) == 2:
						time.Sleep(2 * time.Second)
					}
					return nil
				}, nil)
				transfer := ask("1", "2")
				err := transfer.through(transfers(t, spy, append(mode.options, dedupe.WithLease(3*time.Second))...))
				refused(t, err, dedupe.StoreUnavailable)
				mustMatch(t, err, dedupe.ErrLeaseLost)
				if transfer.ran != 0 {
					t.Error("the handler ran without its first key")
				}
			})
		})
	}
}
