package storetest

import (
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var completeCases = []testCase{
	{"AnswersOthers", func(t *trial) {
		t.complete([]byte("answer"), long)
		t.wantAnswer([]byte("answer"))
		t.wantAnswer([]byte("answer"))
	}},
	{"AnswersItsOwner", func(t *trial) {
		h := t.complete([]byte("answer"), long)
		found := t.want(dedupe.StatusCompleted, dedupe.Claim{Holder: h, Lease: long})
		if string(found.Answer) != "answer" {
			t.Errorf("answer %q", found.Answer)
		}
	}},
	{"RepeatSucceeds", func(t *trial) {
		h := t.complete([]byte("answer"), long)
		t.succeed("Complete", t.store.Complete(t.Context(), h, []byte("answer"), long))
		t.wantAnswer([]byte("answer"))
	}},
	// An answer may have been replayed already. What comes later must not differ.
	{"FirstAnswerStays", func(t *trial) {
		h := t.complete([]byte("first"), long)
		t.succeed("Complete", t.store.Complete(t.Context(), h, []byte("second"), long))
		t.wantAnswer([]byte("first"))
		t.succeed("Complete", t.store.Complete(t.Context(), h, nil, long))
		t.wantAnswer([]byte("first"))
	}},
	{"TombstoneStays", func(t *trial) {
		h := t.complete(nil, long)
		t.succeed("Complete", t.store.Complete(t.Context(), h, []byte("second"), long))
		t.wantAnswer(nil)
	}},
	{"RepeatKeepsTheFirstRetention", func(t *trial) {
		// The repeat may come after the retention, and is refused then.
		h := t.complete([]byte("answer"), short)
		_ = t.store.Complete(t.Context(), h, []byte("answer"), long)
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusCompleted)
	}},
	{"ByAnotherIsRefused", func(t *trial) {
		h := t.hold(long)
		t.lost("Complete", t.store.Complete(t.Context(), t.holder(), []byte("forged"), long))
		t.wantHeld(h)
	}},
	{"OfNothingIsRefused", func(t *trial) {
		t.lost("Complete", t.store.Complete(t.Context(), t.holder(), []byte("forged"), long))
		t.wantFree()
	}},
	{"SurvivesTheLease", func(t *trial) {
		lease := t.inTime(func(c dedupe.Claim) error {
			return t.store.Complete(t.Context(), c.Holder, []byte("answer"), long)
		})
		t.outlive(lease)
		t.wantAnswer([]byte("answer"))
	}},
	{"SurvivesTheLeaseOfAClaimWithLapse", func(t *trial) {
		lease := t.inTime(func(c dedupe.Claim) error {
			c.Lapse = short
			if _, err := t.store.Claim(t.Context(), c); err != nil {
				return err
			}
			return t.store.Complete(t.Context(), c.Holder, []byte("answer"), long)
		})
		t.outlive(lease + short)
		t.wantAnswer([]byte("answer"))
	}},
	{"EndsWithTheRetention", func(t *trial) {
		h := t.hold(long)
		start := time.Now()
		t.succeed("Complete", t.store.Complete(t.Context(), h, []byte("answer"), 2*short))
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusCompleted)
		if kept := time.Since(start); kept < 2*short {
			t.Errorf("kept for %v, want %v", kept, 2*short)
		}
	}},
	{"TombstoneEndsWithTheRetention", func(t *trial) {
		t.complete(nil, short)
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusCompleted)
	}},
	{"LapseDoesNotProlongTheRetention", func(t *trial) {
		c := t.newClaim(long)
		c.Lapse = long
		t.grant(c)
		t.succeed("Complete", t.store.Complete(t.Context(), c.Holder, []byte("answer"), short))
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusCompleted)
	}},
	{"ClaimsDoNotProlongTheRetention", func(t *trial) {
		h := t.complete([]byte("answer"), short)
		t.await(dedupe.StatusGranted, dedupe.Claim{Holder: h, Lease: long, Lapse: long}, dedupe.StatusCompleted)
	}},
	{"IsFollowedByANewAnswer", func(t *trial) {
		t.complete([]byte("first"), short)
		c := t.newClaim(long)
		t.await(dedupe.StatusGranted, c, dedupe.StatusCompleted)
		t.wantHeld(c.Holder)
		t.succeed("Complete", t.store.Complete(t.Context(), c.Holder, []byte("second"), long))
		t.wantAnswer([]byte("second"))
	}},
}
