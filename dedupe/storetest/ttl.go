package storetest

import (
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// ttlCases are about what a store keeps, as seen by [WithTTLs].
var ttlCases = []testCase{
	{"OfAClaimIsTheLease", func(t *trial) {
		t.needTTL()
		t.hold(long)
		t.wantTTL(long)
	}},
	{"OfAClaimWithLapseIsBoth", func(t *trial) {
		t.needTTL()
		c := t.newClaim(long)
		c.Lapse = 2 * long
		t.grant(c)
		t.wantTTL(3 * long)
	}},
	{"OfARepeatedClaimIsTheLease", func(t *trial) {
		t.needTTL()
		c := t.newClaim(long)
		t.grant(c)
		c.Lease = 2 * long
		t.grant(c)
		t.wantTTL(2 * long)
	}},
	{"IsNotMovedByRefusedClaims", func(t *trial) {
		t.needTTL()
		t.grant(t.with(fingerprint))
		c := t.with(fingerprint)
		c.Lease, c.Lapse = 2*long, long
		t.want(dedupe.StatusHeld, c)
		c.Fingerprint = otherFingerprint
		t.want(dedupe.StatusMismatch, c)
		t.wantTTL(long)
	}},
	{"OfExtendIsTheLease", func(t *trial) {
		t.needTTL()
		h := t.hold(long)
		t.succeed("Extend", t.store.Extend(t.Context(), h, 2*long))
		t.wantTTL(2 * long)
		t.succeed("Extend", t.store.Extend(t.Context(), h, long))
		t.wantTTL(long)
	}},
	{"OfExtendWithLapseIsBoth", func(t *trial) {
		t.needTTL()
		c := t.newClaim(long)
		c.Lapse = 2 * long
		t.grant(c)
		t.succeed("Extend", t.store.Extend(t.Context(), c.Holder, 2*long))
		t.wantTTL(4 * long)
	}},
	{"OfAnAnswerIsTheRetention", func(t *trial) {
		t.needTTL()
		t.complete([]byte("answer"), 2*long)
		t.wantTTL(2 * long)
	}},
	{"OfAnAnswerMayBeLessThanTheLease", func(t *trial) {
		t.needTTL()
		t.complete([]byte("answer"), long/2)
		t.wantTTL(long / 2)
	}},
	{"OfAnAnswerIsWithoutTheLapse", func(t *trial) {
		t.needTTL()
		c := t.newClaim(long)
		c.Lapse = 2 * long
		t.grant(c)
		t.succeed("Complete", t.store.Complete(t.Context(), c.Holder, []byte("answer"), long))
		t.wantTTL(long)
	}},
	{"OfATombstoneIsTheRetention", func(t *trial) {
		t.needTTL()
		t.complete(nil, 2*long)
		t.wantTTL(2 * long)
	}},
	{"IsNotMovedByReplays", func(t *trial) {
		t.needTTL()
		h := t.complete([]byte("answer"), long)
		t.want(dedupe.StatusCompleted, t.newClaim(2*long))
		t.succeed("Complete", t.store.Complete(t.Context(), h, []byte("answer"), 2*long))
		t.wantTTL(long)
	}},
	{"OfALapsedRecordIsTheRest", func(t *trial) {
		t.needTTL()
		c := t.lapse(dedupe.Fingerprint{})
		t.lost("Extend", t.store.Extend(t.Context(), c.Holder, 2*long))
		t.lost("Complete", t.store.Complete(t.Context(), c.Holder, []byte("late"), 2*long))
		t.wantTTL(long)
	}},
	{"EndsWithRelease", func(t *trial) {
		t.needTTL()
		c := t.newClaim(long)
		c.Lapse = long
		t.grant(c)
		t.succeed("Release", t.store.Release(t.Context(), c.Holder))
		t.wantNothing()
	}},
	{"EndsWithReleaseOfALapsedRecord", func(t *trial) {
		t.needTTL()
		c := t.lapse(dedupe.Fingerprint{})
		t.succeed("Release", t.store.Release(t.Context(), c.Holder))
		t.wantNothing()
	}},
	{"EndsWithTheLease", func(t *trial) {
		t.needTTL()
		t.hold(short)
		t.awaitNothing()
	}},
	{"EndsWithTheRetention", func(t *trial) {
		t.needTTL()
		t.complete([]byte("answer"), short)
		t.awaitNothing()
	}},
	{"RefusedCallsLeaveNothing", func(t *trial) {
		t.needTTL()
		h := t.holder()
		t.lost("Extend", t.store.Extend(t.Context(), h, long))
		t.lost("Complete", t.store.Complete(t.Context(), h, []byte("forged"), long))
		t.lost("Complete", t.store.Complete(t.Context(), h, nil, long))
		t.succeed("Release", t.store.Release(t.Context(), h))
		t.wantNothing()
	}},
	{"StaleCallsLeaveNothing", func(t *trial) {
		t.needTTL()
		h := t.hold(short)
		t.awaitNothing()
		t.lost("Extend", t.store.Extend(t.Context(), h, long))
		t.lost("Complete", t.store.Complete(t.Context(), h, []byte("late"), long))
		t.succeed("Release", t.store.Release(t.Context(), h))
		t.wantNothing()
	}},
}

func (t *trial) needTTL() {
	t.Helper()
	if t.ttl == nil {
		t.Skip("the store was opened without storetest.WithTTLs")
	}
}

// wantTTL fails unless the trial's key goes after most, counted from a moment ago.
func (t *trial) wantTTL(most time.Duration) {
	t.Helper()
	left, exists, err := t.ttl(t.Context(), t.digest)
	t.succeed("reading the TTL", err)
	// Stores may count in seconds, and the machine may be slow.
	switch {
	case !exists:
		t.Fatalf("nothing is kept, want a TTL of %v", most)
	case left <= 0:
		t.Fatalf("kept for ever, want a TTL of %v", most)
	case left > most+time.Second || left < most-t.patience:
		t.Fatalf("the TTL is %v, want %v", left, most)
	}
}

func (t *trial) wantNothing() {
	t.Helper()
	left, exists, err := t.ttl(t.Context(), t.digest)
	t.succeed("reading the TTL", err)
	if exists {
		t.Fatalf("something is kept, with a TTL of %v", left)
	}
}

func (t *trial) awaitNothing() {
	t.Helper()
	for deadline := time.Now().Add(t.patience); time.Now().Before(deadline); time.Sleep(tick) {
		_, exists, err := t.ttl(t.Context(), t.digest)
		t.succeed("reading the TTL", err)
		if !exists {
			return
		}
	}
	t.Fatalf("still kept after %v", t.patience)
}
