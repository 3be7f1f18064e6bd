package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var contentionCases = []testCase{
	{"NeverTwoOwners", neverTwoOwners},
	// Whoever claims while the owner completes finds it held and then completed, and nothing between.
	{"CompleteAndClaim", func(t *trial) {
		for range 10 {
			t.digest = t.newDigest()
			h := t.hold(long)
			together(9, func(i int) {
				if i == 0 {
					if err := t.store.Complete(t.Context(), h, []byte("answer"), long); err != nil {
						t.Errorf("Complete: %v", err)
					}
					return
				}
				for deadline := time.Now().Add(t.patience); ; {
					found, err := t.store.Claim(t.Context(), t.newClaim(long))
					switch {
					case err != nil:
						t.Errorf("Claim: %v", err)
					case found.Status == dedupe.StatusHeld && time.Now().Before(deadline):
						time.Sleep(tick / 4)
						continue
					case found.Status != dedupe.StatusCompleted || string(found.Answer) != "answer":
						t.Errorf("Claim found %v, answer %q", found.Status, found.Answer)
					}
					return
				}
			})
			t.wantAnswer([]byte("answer"))
		}
	}},
	{"CompleteAndComplete", func(t *trial) {
		for range 10 {
			t.digest = t.newDigest()
			h := t.hold(long)
			answers := make([][]byte, 8)
			together(len(answers), func(i int) {
				if err := t.store.Complete(t.Context(), h, fmt.Append(nil, "answer ", i), long); err != nil {
					t.Errorf("Complete: %v", err)
				}
				found, err := t.store.Claim(t.Context(), t.newClaim(long))
				if err != nil || found.Status != dedupe.StatusCompleted {
					t.Errorf("Claim: %v, %v", found.Status, err)
				}
				answers[i] = found.Answer
			})
			for _, answer := range answers {
				if !bytes.Equal(answer, answers[0]) {
					t.Fatalf("two answers to one request: %q and %q", answers[0], answer)
				}
			}
			t.wantAnswer(answers[0])
		}
	}},
	{"CompleteAndRelease", func(t *trial) {
		for range 20 {
			t.digest = t.newDigest()
			h := t.hold(long)
			var completed, released error
			together(2, func(i int) {
				if i == 0 {
					completed = t.store.Complete(t.Context(), h, []byte("answer"), long)
				} else {
					released = t.store.Release(t.Context(), h)
				}
			})
			switch {
			case completed == nil && errors.Is(released, dedupe.ErrLeaseLost):
				t.wantAnswer([]byte("answer"))
			case errors.Is(completed, dedupe.ErrLeaseLost) && released == nil:
				t.wantFree()
			default:
				t.Fatalf("Complete: %v, Release: %v; want ErrLeaseLost from one", completed, released)
			}
		}
	}},
	{"ExtendAndRelease", func(t *trial) {
		for range 20 {
			t.digest = t.newDigest()
			h := t.hold(long)
			together(8, func(i int) {
				if i == 0 {
					if err := t.store.Release(t.Context(), h); err != nil {
						t.Errorf("Release: %v", err)
					}
					return
				}
				if err := t.store.Extend(t.Context(), h, long); err != nil && !errors.Is(err, dedupe.ErrLeaseLost) {
					t.Errorf("Extend: %v", err)
				}
			})
			t.wantFree()
		}
	}},
	{"ReleaseAndClaim", func(t *trial) {
		for range 20 {
			t.digest = t.newDigest()
			h := t.hold(long)
			var winners sync.Map
			var won atomic.Int32
			together(10, func(i int) {
				if i < 2 {
					// The second of the two may come after a claim, and must leave it alone.
					err := t.store.Release(t.Context(), h)
					if err != nil && !errors.Is(err, dedupe.ErrLeaseLost) {
						t.Errorf("Release: %v", err)
					}
					return
				}
				c := t.newClaim(long)
				found, err := t.store.Claim(t.Context(), c)
				if err != nil {
					t.Errorf("Claim: %v", err)
				}
				if found.Status == dedupe.StatusGranted {
					winners.Store(c.Holder, true)
					won.Add(1)
				}
			})
			if won.Load() > 1 {
				t.Fatalf("%d claims were granted after one release", won.Load())
			}
			winners.Range(func(winner, _ any) bool {
				t.wantHeld(winner.(dedupe.Holder))
				return true
			})
			if won.Load() == 0 {
				t.wantFree()
			}
		}
	}},
	{"FencesAreInTheOrderOfTheGrants", func(t *trial) {
		var last atomic.Uint64
		together(8, func(int) {
			for range 20 {
				c, fence, ok := t.compete(t.digest)
				if !ok {
					return
				}
				if before := last.Swap(fence); fence <= before {
					t.Errorf("fence %d after fence %d", fence, before)
				}
				if err := t.store.Release(t.Context(), c.Holder); err != nil {
					t.Errorf("Release: %v", err)
				}
			}
		})
	}},
}

// neverTwoOwners lets owners of a few keys come and go, and former ones try all they can, while each
// owner checks that it is alone.
func neverTwoOwners(t *trial) {
	const workers, rounds, keys = 12, 30, 3
	var places [keys]struct {
		digest  dedupe.Digest
		owners  atomic.Int32
		balance atomic.Int64
	}
	for i := range places {
		places[i].digest = t.newDigest()
	}
	together(workers, func(int) {
		var former []dedupe.Holder
		for range rounds {
			place := &places[rand.IntN(keys)]
			c, fence, ok := t.compete(place.digest)
			if !ok {
				return
			}
			if n := place.owners.Add(1); n != 1 {
				t.Errorf("%d owners at once", n)
			}
			// Reading and writing in two steps loses what another owner writes in between.
			balance := place.balance.Load()
			t.insist(c, fence)
			time.Sleep(tick / 2)
			place.balance.Store(balance + 1)
			place.owners.Add(-1)
			if err := t.store.Release(t.Context(), c.Holder); err != nil {
				t.Errorf("Release: %v", err)
			}
			former = append(former, c.Holder)
			t.intrude(former[rand.IntN(len(former))])
		}
	})
	var total int64
	for i := range places {
		total += places[i].balance.Load()
	}
	if total != workers*rounds {
		t.Errorf("%d of %d updates were lost", workers*rounds-total, workers*rounds)
	}
}

// compete claims a key until it is granted, which must not take longer than the trial's patience.
func (t *trial) compete(d dedupe.Digest) (c dedupe.Claim, fence uint64, ok bool) {
	c = dedupe.Claim{Holder: dedupe.Holder{Digest: d, Token: newToken()}, Lease: long}
	for deadline := time.Now().Add(t.patience); time.Now().Before(deadline); time.Sleep(tick / 4) {
		found, err := t.store.Claim(t.Context(), c)
		switch {
		case err != nil:
			t.Errorf("Claim: %v", err)
			return c, 0, false
		case found.Status == dedupe.StatusGranted:
			return c, found.Fence, true
		case found.Status != dedupe.StatusHeld:
			t.Errorf("Claim found %v", found.Status)
			return c, 0, false
		}
	}
	t.Errorf("not granted within %v", t.patience)
	return c, 0, false
}

// insist makes a call that an owner may make without losing its key.
func (t *trial) insist(c dedupe.Claim, fence uint64) {
	if rand.IntN(2) == 0 {
		if err := t.store.Extend(t.Context(), c.Holder, long); err != nil {
			t.Errorf("Extend by the owner: %v", err)
		}
		return
	}
	found, err := t.store.Claim(t.Context(), c)
	if err != nil || found.Status != dedupe.StatusGranted || found.Fence != fence {
		t.Errorf("Claim by the owner: %v with fence %d, %v; had fence %d", found.Status, found.Fence, err, fence)
	}
}

// intrude makes a call that a former owner must not get anywhere with.
func (t *trial) intrude(h dedupe.Holder) {
	switch rand.IntN(3) {
	case 0:
		if err := t.store.Extend(t.Context(), h, long); !errors.Is(err, dedupe.ErrLeaseLost) {
			t.Errorf("Extend by a former owner: %v", err)
		}
	case 1:
		if err := t.store.Complete(t.Context(), h, []byte("late"), long); !errors.Is(err, dedupe.ErrLeaseLost) {
			t.Errorf("Complete by a former owner: %v", err)
		}
	default:
		if err := t.store.Release(t.Context(), h); err != nil && !errors.Is(err, dedupe.ErrLeaseLost) {
			t.Errorf("Release by a former owner: %v", err)
		}
	}
}
