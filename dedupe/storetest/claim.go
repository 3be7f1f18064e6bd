package storetest

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var claimCases = []testCase{
	{"FreeKeyIsGranted", func(t *trial) {
		found := t.want(dedupe.StatusGranted, t.newClaim(long))
		if found.Fence == 0 {
			t.Errorf("granted without a fence")
		}
		if found.Answer != nil {
			t.Errorf("granted with the answer %q", found.Answer)
		}
	}},
	{"OneOfManyWins", func(t *trial) {
		for range 5 {
			t.digest = t.newDigest()
			var granted, held atomic.Int32
			together(crowd, func(int) {
				found, err := t.store.Claim(t.Context(), t.newClaim(long))
				switch {
				case err != nil:
					t.Errorf("Claim: %v", err)
				case found.Status == dedupe.StatusGranted:
					granted.Add(1)
				case found.Status == dedupe.StatusHeld:
					held.Add(1)
				}
			})
			if granted.Load() != 1 || held.Load() != crowd-1 {
				t.Fatalf("of %d claims %d are granted and %d held, want 1 and %d",
					crowd, granted.Load(), held.Load(), crowd-1)
			}
		}
	}},
	{"OthersFindItHeld", func(t *trial) {
		h := t.hold(long)
		found := t.want(dedupe.StatusHeld, t.newClaim(long))
		if found.Answer != nil {
			t.Errorf("held with the answer %q", found.Answer)
		}
		t.wantHeld(h)
	}},
	{"RemainingIsTheRestOfTheLease", func(t *trial) {
		start := time.Now()
		t.hold(long)
		got := t.want(dedupe.StatusHeld, t.newClaim(short)).Remaining
		// Stores may count in milliseconds.
		least := long - time.Since(start) - time.Millisecond
		if got < least || got > long {
			t.Errorf("%v of the lease remain, want %v to %v", got, least, long)
		}
	}},
	{"RemainingFalls", func(t *trial) {
		t.hold(long)
		first := t.want(dedupe.StatusHeld, t.newClaim(long)).Remaining
		t.outlive(short)
		if second := t.want(dedupe.StatusHeld, t.newClaim(long)).Remaining; second > first-short/2 {
			t.Errorf("%v of the lease remain, and %v a while later", first, second)
		}
	}},
	// A client that lost the reply asks again, and must neither be refused by itself nor be given
	// another fence than the one it may have used.
	{"RepeatIsGrantedWithTheSameFence", func(t *trial) {
		c := t.newClaim(long)
		first := t.grant(c)
		for range 3 {
			if again := t.grant(c); again != first {
				t.Fatalf("repeated claim has the fence %d, the first had %d", again, first)
			}
		}
		t.wantHeld(c.Holder)
	}},
	{"RepeatsTogetherHaveOneFence", func(t *trial) {
		for range 5 {
			t.digest = t.newDigest()
			c := t.newClaim(long)
			fences := make([]uint64, crowd)
			together(crowd, func(i int) {
				found, err := t.store.Claim(t.Context(), c)
				if err != nil || found.Status != dedupe.StatusGranted {
					t.Errorf("Claim: %v, %v", found.Status, err)
				}
				fences[i] = found.Fence
			})
			if lowest, highest := slices.Min(fences), slices.Max(fences); lowest != highest {
				t.Fatalf("fences from %d to %d for one token", lowest, highest)
			}
		}
	}},
	{"RepeatRestartsTheLease", func(t *trial) {
		lease := t.inTime(func(c dedupe.Claim) error {
			c.Lease = long
			_, err := t.store.Claim(t.Context(), c)
			return err
		})
		t.outlive(lease)
		t.want(dedupe.StatusHeld, t.newClaim(long))
	}},
	{"RepeatMayShortenTheLease", func(t *trial) {
		c := t.newClaim(long)
		t.grant(c)
		c.Lease = short
		t.grant(c)
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusHeld)
	}},
	{"RefusedClaimsDoNotProlong", func(t *trial) {
		t.hold(short)
		c := t.newClaim(long)
		c.Lapse = long
		t.await(dedupe.StatusGranted, c, dedupe.StatusHeld)
	}},
	{"OneBitMakesAnotherKey", func(t *trial) {
		h := t.hold(long)
		for bit := range len(t.digest) * 8 {
			c := t.newClaim(long)
			c.Digest[bit/8] ^= 1 << (bit % 8)
			t.grant(c)
			t.succeed("Release", t.store.Release(t.Context(), c.Holder))
		}
		t.wantHeld(h)
	}},
	{"OneBitMakesAnotherToken", func(t *trial) {
		h := t.hold(long)
		for bit := range len(h.Token) * 8 {
			other := h
			other.Token[bit/8] ^= 1 << (bit % 8)
			t.want(dedupe.StatusHeld, dedupe.Claim{Holder: other, Lease: long})
			t.lost("Extend", t.store.Extend(t.Context(), other, long))
		}
		t.wantHeld(h)
	}},
	{"AnyBytesMakeAKey", func(t *trial) {
		for _, filling := range []byte{0x00, '\n', '{', '}', 0x7f, 0xff} {
			c := t.newClaim(long)
			// The first half keeps the digest from meeting those of other runs.
			for i := len(c.Digest) / 2; i < len(c.Digest); i++ {
				c.Digest[i] = filling
			}
			for i := range c.Token {
				c.Token[i] = filling
			}
			t.grant(c)
			t.succeed("Extend", t.store.Extend(t.Context(), c.Holder, long))
			t.succeed("Release", t.store.Release(t.Context(), c.Holder))
		}
	}},
	{"ManyKeysAreIndependent", func(t *trial) {
		const workers, keys = 16, 63 // about 1,000
		together(workers, func(int) {
			var holders []dedupe.Holder
			for range keys {
				c := dedupe.Claim{Holder: dedupe.Holder{Digest: t.newDigest(), Token: newToken()}, Lease: long}
				found, err := t.store.Claim(t.Context(), c)
				if err != nil || found.Status != dedupe.StatusGranted {
					t.Errorf("Claim: %v, %v", found.Status, err)
				}
				holders = append(holders, c.Holder)
			}
			for _, h := range holders {
				if err := t.store.Extend(t.Context(), h, long); err != nil {
					t.Errorf("Extend: %v", err)
				}
				if err := t.store.Release(t.Context(), h); err != nil {
					t.Errorf("Release: %v", err)
				}
			}
		})
	}},
}
