package dedupe_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

func TestEventsOfARequestThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memstore.New()
		var journal journal
		guard := serialize(t, store, dedupe.WithWait(time.Minute), journal.observe())
		first := ask("7").doing(lasting(2 * time.Second))
		result := first.start(serialize(t, store))
		time.Sleep(time.Second)

		var fence uint64
		second := ask("7").doing(func(ctx context.Context) {
			lease, _ := guard.Lease(ctx)
			fence = lease.Fence()
			time.Sleep(5 * time.Second)
		})
		second.proceeded(t, second.through(guard))
		first.proceeded(t, <-result)

		events := journal.seen()
		if len(events) != 2 {
			t.Fatalf("got %+v, want two events", events)
		}
		decided, settled := events[0], events[1]
		if decided.Kind != dedupe.EventDecided || decided.Outcome != dedupe.Proceed || decided.Open || decided.Err != nil {
			t.Errorf("first %+v", decided)
		}
		if decided.Waited < time.Second || decided.Waited > 1200*time.Millisecond {
			t.Errorf("it says that the request waited for %v, want a little more than 1s", decided.Waited)
		}
		if settled.Kind != dedupe.EventSettled || settled.Held != 5*time.Second || settled.Err != nil {
			t.Errorf("then %+v", settled)
		}
		for _, e := range events {
			if e.Guard != "account" || e.Operation != second.operation || e.Fence != fence {
				t.Errorf("%v is about the guard %q, the operation %q and the fence %d, want %d", e.Kind, e.Guard, e.Operation, e.Fence, fence)
			}
		}
	})
}

func TestEventsOfRequestsThatAreTurnedAway(t *testing.T) {
	var journal journal
	guard := once(t, memstore.New(), journal.observe())
	first := ask("7").doing(func(context.Context) { refused(t, ask("7").through(guard), dedupe.InFlight) })
	first.proceeded(t, first.through(guard))
	repeat := ask("7")
	repeat.wasReplayed(t, repeat.through(guard), "answer")
	refused(t, ask("").through(guard), dedupe.KeyMissing)

	var got []dedupe.Outcome
	for _, e := range journal.seen(dedupe.EventDecided) {
		got = append(got, e.Outcome)
	}
	want := []dedupe.Outcome{dedupe.Proceed, dedupe.InFlight, dedupe.Replay, dedupe.KeyMissing}
	if len(got) != len(want) || len(journal.seen(dedupe.EventSettled)) != 1 {
		t.Fatalf("the observer was told %+v", journal.seen())
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("decision %d is %v, want %v", i+1, got[i], want[i])
		}
	}
}
