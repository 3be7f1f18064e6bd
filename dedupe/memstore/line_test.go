package memstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

// ear is a waiter that keeps what it is told.
type ear chan dedupe.Grant

func (e ear) Wake(_ dedupe.Holder, g dedupe.Grant) bool {
	e <- g
	return true
}

// A place is kept for as long as the last claim for it says, not the first.
func TestGrantsAreForTheLeaseAskedForLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, owner, waiting := memstore.New(), claim(1, 1), claim(1, 2)
		words := make(ear, 1)
		expect(t, store, owner, dedupe.StatusGranted)
		for _, waiting.Lease = range []time.Duration{time.Second, time.Hour} {
			waiting.Waiter = words
			if !expect(t, store, waiting, dedupe.StatusHeld).Queued {
				t.Fatal("it has no place")
			}
		}
		if err := store.Release(t.Context(), owner.Holder); err != nil {
			t.Fatal(err)
		}
		if g := <-words; g.Lease != time.Hour {
			t.Errorf("granted for %v", g.Lease)
		}
		time.Sleep(time.Hour - time.Nanosecond)
		expect(t, store, claim(1, 3), dedupe.StatusHeld)
		time.Sleep(time.Nanosecond)
		expect(t, store, claim(1, 3), dedupe.StatusGranted)
	})
}
