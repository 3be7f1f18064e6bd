package storetest

import "github.com/interlock-go/interlock/dedupe"

var releaseCases = []testCase{
	{"FreesTheKeyAtOnce", func(t *trial) {
		h := t.hold(long)
		t.succeed("Release", t.store.Release(t.Context(), h))
		t.hold(long)
	}},
	{"RepeatSucceeds", func(t *trial) {
		h := t.hold(long)
		for range 3 {
			t.succeed("Release", t.store.Release(t.Context(), h))
		}
		t.wantFree()
	}},
	{"OfNothingSucceeds", func(t *trial) {
		t.succeed("Release", t.store.Release(t.Context(), t.holder()))
		t.wantFree()
	}},
	{"ByAnotherIsRefused", func(t *trial) {
		h := t.hold(long)
		t.lost("Release", t.store.Release(t.Context(), t.holder()))
		t.wantHeld(h)
	}},
	// The order of two late calls must not decide whether an answer is kept.
	{"KeepsTheAnswerOfItsOwner", func(t *trial) {
		h := t.complete([]byte("answer"), long)
		t.lost("Release", t.store.Release(t.Context(), h))
		t.wantAnswer([]byte("answer"))
	}},
	{"KeepsTheTombstoneOfItsOwner", func(t *trial) {
		h := t.complete(nil, long)
		t.lost("Release", t.store.Release(t.Context(), h))
		t.wantAnswer(nil)
	}},
	{"KeepsTheAnswerOfAnother", func(t *trial) {
		t.complete([]byte("answer"), long)
		t.lost("Release", t.store.Release(t.Context(), t.holder()))
		t.wantAnswer([]byte("answer"))
	}},
	{"ForgetsTheFingerprint", func(t *trial) {
		c := t.newClaim(long)
		c.Fingerprint = fingerprint
		t.grant(c)
		t.succeed("Release", t.store.Release(t.Context(), c.Holder))
		other := t.newClaim(long)
		other.Fingerprint = otherFingerprint
		t.grant(other)
		t.want(dedupe.StatusMismatch, t.with(fingerprint))
	}},
	{"ForgetsTheLapse", func(t *trial) {
		c := t.newClaim(long)
		c.Lapse = long
		t.grant(c)
		t.succeed("Release", t.store.Release(t.Context(), c.Holder))
		t.grant(t.newClaim(short))
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusHeld)
	}},
	{"AfterExtend", func(t *trial) {
		h := t.hold(long)
		t.succeed("Extend", t.store.Extend(t.Context(), h, long))
		t.succeed("Release", t.store.Release(t.Context(), h))
		t.wantFree()
	}},
}
