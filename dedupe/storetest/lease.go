package storetest

import (
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var leaseCases = []testCase{
	// The owner measures its lease from before it asked. Whatever the lengths of the ways to the
	// store, nobody else may be granted the key before that time is over.
	{"IsNeverCutShort", func(t *trial) {
		leases := []int{50, 75, 100, 137, 150, 200}
		together(len(leases), func(i int) {
			lease := time.Duration(leases[i]) * time.Millisecond
			first := dedupe.Claim{Holder: dedupe.Holder{Digest: t.newDigest(), Token: newToken()}, Lease: lease}
			start := time.Now()
			found, err := t.store.Claim(t.Context(), first)
			if err != nil || found.Status != dedupe.StatusGranted {
				t.Errorf("Claim: %v, %v", found.Status, err)
				return
			}
			second := first
			second.Token = newToken()
			for time.Since(start) < t.patience {
				found, err := t.store.Claim(t.Context(), second)
				switch {
				case err != nil:
					t.Errorf("Claim: %v", err)
					return
				case found.Status != dedupe.StatusGranted:
					time.Sleep(tick / 4)
					continue
				}
				if held := time.Since(start); held < lease {
					t.Errorf("granted to another %v after a lease of %v began", held, lease)
				}
				return
			}
			t.Errorf("a lease of %v is not over after %v", lease, t.patience)
		})
	}},
	{"IsNeverCutShortByRepeats", func(t *trial) {
		c := t.newClaim(long)
		t.grant(c)
		c.Lease = 2 * short
		start := time.Now()
		t.grant(c)
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusHeld)
		if held := time.Since(start); held < c.Lease {
			t.Errorf("granted to another %v after a lease of %v began", held, c.Lease)
		}
	}},
	{"FreesTheKeyAtItsEnd", func(t *trial) {
		t.hold(short)
		c := t.newClaim(long)
		t.await(dedupe.StatusGranted, c, dedupe.StatusHeld)
		t.wantHeld(c.Holder)
	}},
	{"OneOfManyTakesOver", func(t *trial) {
		t.hold(short)
		var winners atomic.Int32
		over := make(chan struct{})
		deadline := time.Now().Add(t.patience)
		together(crowd, func(int) {
			c := t.newClaim(long)
			for last := false; !last && time.Now().Before(deadline); time.Sleep(tick) {
				select {
				case <-over:
					last = true // once more, in case a second one is granted
				default:
				}
				found, err := t.store.Claim(t.Context(), c)
				if err != nil {
					t.Errorf("Claim: %v", err)
					return
				}
				if found.Status == dedupe.StatusGranted {
					if winners.Add(1) == 1 {
						close(over)
					}
					return
				}
			}
		})
		if n := winners.Load(); n != 1 {
			t.Errorf("%d took over, want 1", n)
		}
	}},
	{"OneOfManyTakesOverWhatIsOver", func(t *trial) {
		t.hold(short)
		t.outlive(short)
		var winners atomic.Int32
		together(crowd, func(int) {
			found, err := t.store.Claim(t.Context(), t.newClaim(long))
			if err != nil {
				t.Errorf("Claim: %v", err)
			}
			if found.Status == dedupe.StatusGranted {
				winners.Add(1)
			}
		})
		if n := winners.Load(); n != 1 {
			t.Errorf("%d took over, want 1", n)
		}
	}},
}
