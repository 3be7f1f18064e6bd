package storetest

import "github.com/interlock-go/interlock/dedupe"

var (
	fingerprint      = dedupe.Fingerprint{0: 1, 15: 0xff, 31: 1}
	otherFingerprint = dedupe.Fingerprint{0: 1, 15: 0xff, 31: 2}
)

var fingerprintCases = []testCase{
	{"SameFindsItHeld", func(t *trial) {
		t.grant(t.with(fingerprint))
		t.want(dedupe.StatusHeld, t.with(fingerprint))
	}},
	{"SameFindsItCompleted", func(t *trial) {
		t.completeWith(fingerprint, []byte("answer"))
		found := t.want(dedupe.StatusCompleted, t.with(fingerprint))
		if string(found.Answer) != "answer" {
			t.Errorf("answer %q", found.Answer)
		}
	}},
	{"SameFindsItLapsed", func(t *trial) {
		t.lapse(fingerprint)
		t.want(dedupe.StatusLapsed, t.with(fingerprint))
	}},
	{"MismatchWinsOverHeld", func(t *trial) {
		t.grant(t.with(fingerprint))
		t.want(dedupe.StatusMismatch, t.with(otherFingerprint))
	}},
	{"MismatchWinsOverCompleted", func(t *trial) {
		t.completeWith(fingerprint, []byte("secret"))
		found := t.want(dedupe.StatusMismatch, t.with(otherFingerprint))
		if found.Answer != nil {
			t.Errorf("a mismatch is told the answer %q", found.Answer)
		}
	}},
	{"MismatchWinsOverTombstone", func(t *trial) {
		t.completeWith(fingerprint, nil)
		t.want(dedupe.StatusMismatch, t.with(otherFingerprint))
	}},
	{"MismatchWinsOverLapsed", func(t *trial) {
		t.lapse(fingerprint)
		t.want(dedupe.StatusMismatch, t.with(otherFingerprint))
	}},
	{"MismatchWinsOverOwnership", func(t *trial) {
		c := t.with(fingerprint)
		t.grant(c)
		other := c
		other.Fingerprint = otherFingerprint
		t.want(dedupe.StatusMismatch, other)
		t.grant(c)
	}},
	{"MismatchChangesNothing", func(t *trial) {
		c := t.with(fingerprint)
		t.grant(c)
		t.want(dedupe.StatusMismatch, t.with(otherFingerprint))
		t.want(dedupe.StatusMismatch, t.with(otherFingerprint))
		t.want(dedupe.StatusHeld, t.with(fingerprint))
		t.wantHeld(c.Holder)
	}},
	{"MismatchDoesNotProlong", func(t *trial) {
		c := t.with(fingerprint)
		c.Lease = short
		t.grant(c)
		other := t.with(otherFingerprint)
		other.Lapse = long
		t.await(dedupe.StatusGranted, other, dedupe.StatusMismatch)
	}},
	{"HeldDoesNotReplaceIt", func(t *trial) {
		t.grant(t.newClaim(long))
		t.want(dedupe.StatusHeld, t.with(fingerprint))
		t.want(dedupe.StatusHeld, t.with(otherFingerprint))
	}},
	{"ZeroClaimMatchesHeld", func(t *trial) {
		t.grant(t.with(fingerprint))
		t.want(dedupe.StatusHeld, t.newClaim(long))
	}},
	{"ZeroClaimMatchesCompleted", func(t *trial) {
		t.completeWith(fingerprint, []byte("answer"))
		t.want(dedupe.StatusCompleted, t.newClaim(long))
	}},
	{"ZeroRecordMatchesAny", func(t *trial) {
		t.grant(t.newClaim(long))
		t.want(dedupe.StatusHeld, t.with(fingerprint))
	}},
	{"ZeroRecordMatchesAnyWhenCompleted", func(t *trial) {
		t.complete([]byte("answer"), long)
		t.want(dedupe.StatusCompleted, t.with(fingerprint))
	}},
	{"EveryBitCounts", func(t *trial) {
		t.grant(t.with(fingerprint))
		for bit := range len(fingerprint) * 8 {
			f := fingerprint
			f[bit/8] ^= 1 << (bit % 8)
			t.want(dedupe.StatusMismatch, t.with(f))
		}
	}},
	{"GoesWithTheLease", func(t *trial) {
		c := t.with(fingerprint)
		c.Lease = short
		t.grant(c)
		t.await(dedupe.StatusGranted, t.with(otherFingerprint), dedupe.StatusMismatch)
		t.want(dedupe.StatusMismatch, t.with(fingerprint))
	}},
	{"GoesWithTheRetention", func(t *trial) {
		c := t.with(fingerprint)
		t.grant(c)
		t.succeed("Complete", t.store.Complete(t.Context(), c.Holder, []byte("answer"), short))
		t.await(dedupe.StatusGranted, t.with(otherFingerprint), dedupe.StatusMismatch)
		t.want(dedupe.StatusMismatch, t.with(fingerprint))
	}},
}

// with makes the claim of another contender, with a fingerprint.
func (t *trial) with(f dedupe.Fingerprint) dedupe.Claim {
	c := t.newClaim(long)
	c.Fingerprint = f
	return c
}

func (t *trial) completeWith(f dedupe.Fingerprint, answer []byte) {
	t.Helper()
	c := t.with(f)
	t.grant(c)
	t.succeed("Complete", t.store.Complete(t.Context(), c.Holder, answer, long))
}
