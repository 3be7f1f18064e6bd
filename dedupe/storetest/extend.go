package storetest

import (
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var extendCases = []testCase{
	{"MovesTheEndOfTheLease", func(t *trial) {
		lease := t.inTime(func(c dedupe.Claim) error {
			return t.store.Extend(t.Context(), c.Holder, long)
		})
		t.outlive(lease)
		t.want(dedupe.StatusHeld, t.newClaim(long))
	}},
	{"MayShortenTheLease", func(t *trial) {
		h := t.hold(long)
		t.succeed("Extend", t.store.Extend(t.Context(), h, short))
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusHeld)
	}},
	{"NeverCutsItsOwnLeaseShort", func(t *trial) {
		h := t.hold(long)
		start := time.Now()
		t.succeed("Extend", t.store.Extend(t.Context(), h, 2*short))
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusHeld)
		if held := time.Since(start); held < 2*short {
			t.Errorf("granted to another %v after a lease of %v began", held, 2*short)
		}
	}},
	// The lease is counted from now. If it were added to what is left, a holder could not promise
	// its successor an end.
	{"DoesNotAddUp", func(t *trial) {
		h := t.hold(long)
		for range 3 {
			t.succeed("Extend", t.store.Extend(t.Context(), h, long))
		}
		if left := t.want(dedupe.StatusHeld, t.newClaim(long)).Remaining; left > long {
			t.Errorf("%v remain of a lease of %v", left, long)
		}
	}},
	{"KeepsTheFence", func(t *trial) {
		c := t.newClaim(long)
		first := t.grant(c)
		t.succeed("Extend", t.store.Extend(t.Context(), c.Holder, long))
		if second := t.grant(c); second != first {
			t.Errorf("fence %d became %d", first, second)
		}
	}},
	{"KeepsTheFingerprint", func(t *trial) {
		c := t.newClaim(long)
		c.Fingerprint = fingerprint
		t.grant(c)
		t.succeed("Extend", t.store.Extend(t.Context(), c.Holder, long))
		other := t.newClaim(long)
		other.Fingerprint = otherFingerprint
		t.want(dedupe.StatusMismatch, other)
	}},
	{"KeepsTheLapse", func(t *trial) {
		c := t.newClaim(long)
		c.Lapse = long
		t.grant(c)
		t.succeed("Extend", t.store.Extend(t.Context(), c.Holder, short))
		t.await(dedupe.StatusLapsed, t.newClaim(long), dedupe.StatusHeld)
	}},
	{"ByAnotherIsRefused", func(t *trial) {
		h := t.hold(long)
		t.lost("Extend", t.store.Extend(t.Context(), t.holder(), short))
		t.outlive(short)
		t.wantHeld(h)
	}},
	{"OfNothingIsRefused", func(t *trial) {
		t.lost("Extend", t.store.Extend(t.Context(), t.holder(), long))
		t.wantFree()
	}},
	{"OfACompletedRecordIsRefused", func(t *trial) {
		h := t.complete([]byte("answer"), long)
		t.lost("Extend", t.store.Extend(t.Context(), h, short))
		t.outlive(short)
		t.wantAnswer([]byte("answer"))
	}},
	{"DoesNotProlongTheRetention", func(t *trial) {
		h := t.complete([]byte("answer"), short)
		t.lost("Extend", t.store.Extend(t.Context(), h, long))
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusCompleted)
	}},
}
