package storetest

import "github.com/interlock-go/interlock/dedupe"

// staleCases are about an owner that comes back when its lease is over.
var staleCases = []testCase{
	{"ExtendAfterExpiry", func(t *trial) {
		h := t.hold(short)
		t.outlive(short)
		t.lost("Extend", t.store.Extend(t.Context(), h, long))
		t.wantFree()
	}},
	{"CompleteAfterExpiry", func(t *trial) {
		h := t.hold(short)
		t.outlive(short)
		t.lost("Complete", t.store.Complete(t.Context(), h, []byte("late"), long))
		t.wantFree()
	}},
	{"TombstoneAfterExpiry", func(t *trial) {
		h := t.hold(short)
		t.outlive(short)
		t.lost("Complete", t.store.Complete(t.Context(), h, nil, long))
		t.wantFree()
	}},
	{"ReleaseAfterExpiry", func(t *trial) {
		h := t.hold(short)
		t.outlive(short)
		t.succeed("Release", t.store.Release(t.Context(), h))
		t.wantFree()
	}},
	{"ExtendAfterTakeover", func(t *trial) {
		stale, owner := t.takeOver()
		t.lost("Extend", t.store.Extend(t.Context(), stale, long))
		t.wantHeld(owner)
	}},
	{"CompleteAfterTakeover", func(t *trial) {
		stale, owner := t.takeOver()
		t.lost("Complete", t.store.Complete(t.Context(), stale, []byte("late"), long))
		t.wantHeld(owner)
	}},
	{"ReleaseAfterTakeover", func(t *trial) {
		stale, owner := t.takeOver()
		t.lost("Release", t.store.Release(t.Context(), stale))
		t.wantHeld(owner)
	}},
	{"ClaimAfterTakeover", func(t *trial) {
		stale, owner := t.takeOver()
		t.want(dedupe.StatusHeld, dedupe.Claim{Holder: stale, Lease: long})
		t.wantHeld(owner)
	}},
	{"ExtendAfterRelease", func(t *trial) {
		h := t.hold(long)
		t.succeed("Release", t.store.Release(t.Context(), h))
		t.lost("Extend", t.store.Extend(t.Context(), h, long))
		t.wantFree()
	}},
	{"CompleteAfterRelease", func(t *trial) {
		h := t.hold(long)
		t.succeed("Release", t.store.Release(t.Context(), h))
		t.lost("Complete", t.store.Complete(t.Context(), h, []byte("late"), long))
		t.wantFree()
	}},
	{"ReleaseAfterReleaseAndClaim", func(t *trial) {
		stale := t.hold(long)
		t.succeed("Release", t.store.Release(t.Context(), stale))
		owner := t.hold(long)
		t.lost("Release", t.store.Release(t.Context(), stale))
		t.wantHeld(owner)
	}},
	{"ExtendAfterAnothersCompletion", func(t *trial) {
		stale, owner := t.takeOver()
		t.succeed("Complete", t.store.Complete(t.Context(), owner, []byte("answer"), long))
		t.lost("Extend", t.store.Extend(t.Context(), stale, long))
		t.wantAnswer([]byte("answer"))
	}},
	{"CompleteAfterAnothersCompletion", func(t *trial) {
		stale, owner := t.takeOver()
		t.succeed("Complete", t.store.Complete(t.Context(), owner, []byte("answer"), long))
		t.lost("Complete", t.store.Complete(t.Context(), stale, []byte("late"), long))
		t.wantAnswer([]byte("answer"))
	}},
	{"ReleaseAfterAnothersCompletion", func(t *trial) {
		stale, owner := t.takeOver()
		t.succeed("Complete", t.store.Complete(t.Context(), owner, []byte("answer"), long))
		t.lost("Release", t.store.Release(t.Context(), stale))
		t.wantAnswer([]byte("answer"))
	}},
	{"CompleteAfterRetention", func(t *trial) {
		h := t.complete([]byte("answer"), short)
		t.outlive(short)
		t.lost("Complete", t.store.Complete(t.Context(), h, []byte("late"), long))
		t.wantFree()
	}},
	{"ReleaseAfterRetention", func(t *trial) {
		h := t.complete([]byte("answer"), short)
		t.outlive(short)
		t.succeed("Release", t.store.Release(t.Context(), h))
		t.wantFree()
	}},
}

// takeOver lets a lease end and grants the key to another.
func (t *trial) takeOver() (stale, owner dedupe.Holder) {
	t.Helper()
	stale = t.hold(short)
	c := t.newClaim(long)
	t.await(dedupe.StatusGranted, c, dedupe.StatusHeld)
	return stale, c.Holder
}
