package memstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/dedupe/storetest"
)

func TestStore(t *testing.T) {
	store := memstore.New()
	storetest.Run(t,
		func(*testing.T) dedupe.Store { return store },
		storetest.WithLines(),
		storetest.WithTTLs(func(_ context.Context, d dedupe.Digest) (time.Duration, bool, error) {
			left, exists := store.TTL(d)
			return left, exists, nil
		}),
	)
}

// In a bubble the clock moves when everyone sleeps: ends can be hit exactly.
func TestEndsAreExclusive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		first, second := claim(1, 1), claim(1, 2)
		first.Lapse = time.Hour
		expect(t, store, first, dedupe.StatusGranted)

		time.Sleep(first.Lease - time.Nanosecond)
		found := expect(t, store, second, dedupe.StatusHeld)
		if found.Remaining != time.Nanosecond {
			t.Errorf("%v of the lease remain", found.Remaining)
		}
		time.Sleep(time.Nanosecond)
		found = expect(t, store, second, dedupe.StatusLapsed)
		if found.Remaining != time.Hour {
			t.Errorf("%v of the lapse remain", found.Remaining)
		}
		time.Sleep(time.Hour - time.Nanosecond)
		expect(t, store, second, dedupe.StatusLapsed)
		time.Sleep(time.Nanosecond)
		expect(t, store, second, dedupe.StatusGranted)

		if err := store.Complete(t.Context(), second.Holder, nil, time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Nanosecond)
		expect(t, store, first, dedupe.StatusCompleted)
		time.Sleep(time.Nanosecond)
		expect(t, store, first, dedupe.StatusGranted)
	})
}

func TestExtendAtTheEndIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, c := memstore.New(), claim(1, 1)
		expect(t, store, c, dedupe.StatusGranted)
		time.Sleep(c.Lease - time.Nanosecond)
		if err := store.Extend(t.Context(), c.Holder, c.Lease); err != nil {
			t.Errorf("in time: %v", err)
		}
		time.Sleep(c.Lease)
		if err := store.Extend(t.Context(), c.Holder, c.Lease); !errors.Is(err, dedupe.ErrLeaseLost) {
			t.Errorf("late: %v", err)
		}
	})
}

func TestFencesRiseWhileTheClockStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		var last uint64
		for token := range byte(100) {
			c := claim(1, token)
			fence := expect(t, store, c, dedupe.StatusGranted).Fence
			if fence <= last {
				t.Fatalf("fence %d after fence %d", fence, last)
			}
			last = fence
			if err := store.Release(t.Context(), c.Holder); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestWhatIsOverIsPurgedByLaterCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 10_000
		store := memstore.New()
		for i := range uint32(keys) {
			c := numbered(i)
			c.Lease = time.Duration(i%7+1) * time.Second
			expect(t, store, c, dedupe.StatusGranted)
			if i%2 == 0 {
				if err := store.Complete(t.Context(), c.Holder, []byte("answer"), time.Minute); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(10 * time.Second)
		if n := store.Len(); n != keys/2 {
			t.Errorf("%d records while the answers are kept, want %d", n, keys/2)
		}
		time.Sleep(time.Minute)
		if n := store.Kept(); n != keys/2 {
			t.Errorf("%d records without a call, want %d", n, keys/2)
		}
		const calls = keys / 4
		for i := range uint32(calls) {
			expect(t, store, numbered(i), dedupe.StatusGranted)
		}
		if n := store.Kept(); n > calls {
			t.Errorf("%d records after %d more grants: some are over", n, calls)
		}
		time.Sleep(time.Minute)
		if n := store.Len(); n != 0 {
			t.Errorf("%d records when all are over", n)
		}
	})
}

func TestReleaseLeavesNothing(t *testing.T) {
	store := memstore.New()
	for i := range uint32(1000) {
		c := numbered(i)
		expect(t, store, c, dedupe.StatusGranted)
		if err := store.Release(t.Context(), c.Holder); err != nil {
			t.Fatal(err)
		}
	}
	if n := store.Kept(); n != 0 {
		t.Errorf("%d records after as many releases as grants", n)
	}
}

func TestDurationsWithoutSense(t *testing.T) {
	for _, d := range []time.Duration{0, -1, math.MinInt64} {
		store, c := memstore.New(), claim(1, 1)
		c.Lease, c.Lapse = d, d
		expect(t, store, c, dedupe.StatusGranted)
		if n := store.Len(); n != 0 {
			t.Errorf("lease %v: %d records", d, n)
		}

		c.Lapse = time.Minute
		expect(t, store, c, dedupe.StatusGranted)
		found := expect(t, store, claim(1, 2), dedupe.StatusLapsed)
		if found.Remaining <= 0 || found.Remaining > time.Minute {
			t.Errorf("lease %v: %v of the lapse remain", d, found.Remaining)
		}

		c = claim(2, 1)
		expect(t, store, c, dedupe.StatusGranted)
		if err := store.Extend(t.Context(), c.Holder, d); err != nil {
			t.Errorf("Extend by %v: %v", d, err)
		}
		expect(t, store, claim(2, 2), dedupe.StatusGranted)

		c = claim(3, 1)
		expect(t, store, c, dedupe.StatusGranted)
		if err := store.Complete(t.Context(), c.Holder, nil, d); err != nil {
			t.Errorf("Complete for %v: %v", d, err)
		}
		expect(t, store, claim(3, 2), dedupe.StatusGranted)
	}

	store, c := memstore.New(), claim(1, 1)
	c.Lease, c.Lapse = math.MaxInt64, math.MaxInt64
	expect(t, store, c, dedupe.StatusGranted)
	expect(t, store, claim(1, 2), dedupe.StatusHeld)
}

func TestCauseOfTheContextIsJoined(t *testing.T) {
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := memstore.New().Claim(ctx, claim(1, 1))
	if !errors.Is(err, dedupe.ErrStoreUnavailable) || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestClaimAndReleaseAllocateLittle(t *testing.T) {
	store, c := memstore.New(), claim(1, 1)
	allocations := testing.AllocsPerRun(1000, func() {
		_, _ = store.Claim(t.Context(), c)
		_ = store.Release(t.Context(), c.Holder)
	})
	if allocations > 2 {
		t.Errorf("%v allocations", allocations)
	}
}

func expect(t *testing.T, store dedupe.Store, c dedupe.Claim, want dedupe.Status) dedupe.Claimed {
	t.Helper()
	found, err := store.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if found.Status != want {
		t.Fatalf("Claim found %v, want %v", found.Status, want)
	}
	return found
}

// numbered makes the claim of the i-th key. Its first byte spreads the keys as a hash would.
func numbered(i uint32) dedupe.Claim {
	c := claim(byte(i), 1)
	binary.BigEndian.PutUint32(c.Digest[1:], i)
	return c
}
