package storetest

import (
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var fenceCases = []testCase{
	{"RisesOverRelease", func(t *trial) {
		c := t.newClaim(long)
		first := t.grant(c)
		t.succeed("Release", t.store.Release(t.Context(), c.Holder))
		t.wantHigher(first, t.grant(t.newClaim(long)))
	}},
	{"RisesOverReleaseForTheSameToken", func(t *trial) {
		c := t.newClaim(long)
		first := t.grant(c)
		t.succeed("Release", t.store.Release(t.Context(), c.Holder))
		t.wantHigher(first, t.grant(c))
	}},
	{"RisesOverTakeover", func(t *trial) {
		first := t.grant(t.newClaim(short))
		second := t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusHeld)
		t.wantHigher(first, second.Fence)
	}},
	// Another may have had the key in between: whoever comes back after its lease is a new owner.
	{"RisesOverExpiryForTheSameToken", func(t *trial) {
		c := t.newClaim(short)
		first := t.grant(c)
		t.outlive(short)
		t.wantHigher(first, t.grant(c))
	}},
	{"RisesOverRetention", func(t *trial) {
		c := t.newClaim(long)
		first := t.grant(c)
		t.succeed("Complete", t.store.Complete(t.Context(), c.Holder, []byte("answer"), short))
		second := t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusCompleted)
		t.wantHigher(first, second.Fence)
	}},
	{"RisesOverLapse", func(t *trial) {
		c := t.newClaim(short)
		c.Lapse = short
		first := t.grant(c)
		second := t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusHeld, dedupe.StatusLapsed)
		t.wantHigher(first, second.Fence)
	}},
	{"RisesIn200Cycles", func(t *trial) {
		var last uint64
		for range 200 {
			c := t.newClaim(long)
			fence := t.grant(c)
			t.wantHigher(last, fence)
			last = fence
			t.succeed("Release", t.store.Release(t.Context(), c.Holder))
		}
	}},
	// A fence that counts from one starts again when the data is lost. One that is a time in
	// microseconds does not, and another unit would be lower or higher by orders of magnitude.
	{"IsATimeInMicroseconds", func(t *trial) {
		early := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		late := time.Date(2224, time.January, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		if fence := t.grant(t.newClaim(long)); fence < uint64(early) || fence > uint64(late) {
			t.Errorf("fence %d is no time in microseconds", fence)
		}
	}},
}

// wantHigher fails unless second is a fence of a later grant.
func (t *trial) wantHigher(first, second uint64) {
	t.Helper()
	if second <= first {
		t.Fatalf("fence %d after fence %d", second, first)
	}
}
