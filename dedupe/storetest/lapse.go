package storetest

import (
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var lapseCases = []testCase{
	{"FollowsTheLease", func(t *trial) {
		c := t.newClaim(2 * short)
		c.Lapse = long
		start := time.Now()
		t.grant(c)
		t.await(dedupe.StatusLapsed, t.newClaim(long), dedupe.StatusHeld)
		if held := time.Since(start); held < c.Lease {
			t.Errorf("lapsed %v after a lease of %v began", held, c.Lease)
		}
	}},
	{"RemainingIsTheRestOfTheRecord", func(t *trial) {
		c := t.newClaim(short)
		c.Lapse = long
		start := time.Now()
		t.grant(c)
		found := t.await(dedupe.StatusLapsed, t.newClaim(long), dedupe.StatusHeld)
		// Stores may count in milliseconds.
		least := short + long - time.Since(start) - time.Millisecond
		if found.Remaining < least || found.Remaining > long {
			t.Errorf("%v of the lapse remain, want %v to %v", found.Remaining, least, long)
		}
		if found.Answer != nil {
			t.Errorf("lapsed with the answer %q", found.Answer)
		}
	}},
	{"HeldRemainingIsWithoutTheLapse", func(t *trial) {
		c := t.newClaim(long)
		c.Lapse = long
		t.grant(c)
		if left := t.want(dedupe.StatusHeld, t.newClaim(long)).Remaining; left > long {
			t.Errorf("%v remain of a lease of %v", left, long)
		}
	}},
	{"EndsAfterItsTime", func(t *trial) {
		c := t.newClaim(short)
		c.Lapse = short
		start := time.Now()
		t.grant(c)
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusHeld, dedupe.StatusLapsed)
		if kept := time.Since(start); kept < c.Lease+c.Lapse {
			t.Errorf("kept for %v, want %v", kept, c.Lease+c.Lapse)
		}
	}},
	{"ZeroFreesTheKey", func(t *trial) {
		t.hold(short)
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusHeld)
	}},
	{"ClaimsDoNotProlongIt", func(t *trial) {
		c := t.newClaim(short)
		c.Lapse = short
		t.grant(c)
		other := t.newClaim(long)
		other.Lapse = long
		t.await(dedupe.StatusGranted, other, dedupe.StatusHeld, dedupe.StatusLapsed)
	}},
	// Its lease was over: to be granted again, the owner would have to know that nothing happened.
	{"OwnerFindsItToo", func(t *trial) {
		c := t.lapse(dedupe.Fingerprint{})
		t.want(dedupe.StatusLapsed, c)
		t.want(dedupe.StatusLapsed, t.newClaim(long))
	}},
	{"OwnerMayRelease", func(t *trial) {
		c := t.lapse(dedupe.Fingerprint{})
		t.succeed("Release", t.store.Release(t.Context(), c.Holder))
		t.succeed("Release", t.store.Release(t.Context(), c.Holder))
		t.wantFree()
	}},
	{"OthersMayNotRelease", func(t *trial) {
		t.lapse(dedupe.Fingerprint{})
		t.lost("Release", t.store.Release(t.Context(), t.holder()))
		t.want(dedupe.StatusLapsed, t.newClaim(long))
	}},
	{"OwnerMayNotExtend", func(t *trial) {
		c := t.lapse(dedupe.Fingerprint{})
		t.lost("Extend", t.store.Extend(t.Context(), c.Holder, long))
		t.want(dedupe.StatusLapsed, t.newClaim(long))
	}},
	{"OwnerMayNotComplete", func(t *trial) {
		c := t.lapse(dedupe.Fingerprint{})
		t.lost("Complete", t.store.Complete(t.Context(), c.Holder, []byte("late"), long))
		t.want(dedupe.StatusLapsed, t.newClaim(long))
	}},
	{"OthersMayNotComplete", func(t *trial) {
		t.lapse(dedupe.Fingerprint{})
		t.lost("Complete", t.store.Complete(t.Context(), t.holder(), []byte("forged"), long))
		t.want(dedupe.StatusLapsed, t.newClaim(long))
	}},
	{"CompletedDoesNotLapse", func(t *trial) {
		lease := t.inTime(func(c dedupe.Claim) error {
			c.Lapse = long
			if _, err := t.store.Claim(t.Context(), c); err != nil {
				return err
			}
			return t.store.Complete(t.Context(), c.Holder, []byte("answer"), 2*long)
		})
		t.outlive(lease)
		t.wantAnswer([]byte("answer"))
	}},
}
