package adaptertest

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/dedupe"
)

var closeScenarios = []scenario{
	{"RefusesWhatComes", func(t *trial) {
		once := t.once()
		t.serve(Mount{Route: []*dedupe.Guard{once}})
		t.proceed(1, t.request("k"))
		if err := once.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.refuse(dedupe.StoreUnavailable, t.request("k"))
		t.refuse(dedupe.StoreUnavailable, t.request("l"))
		t.wantRuns(1)
	}},
	{"RefusesWhateverTheOptions", func(t *trial) {
		account := t.account(dedupe.WithFailOpen())
		t.serve(Mount{Route: []*dedupe.Guard{account}})
		if err := account.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.refuse(dedupe.StoreUnavailable, t.request("k"))
		t.wantRuns(0)
	}},
	{"WaitsForWhatRuns", func(t *trial) {
		once := t.once()
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{once}}, g.first)
		first := g.occupy(t.request("k"))
		closed := make(chan error, 1)
		go func() { closed <- once.Close(t.Context()) }()
		t.wantRefusal(dedupe.StoreUnavailable, t.until(t.request("k"), dedupe.InFlight))
		select {
		case err := <-closed:
			t.Fatalf("Close did not wait: %v", err)
		default:
		}
		t.wantAnswer(1, false, g.release(first))
		if err := receive(t, closed, "the end of Close"); err != nil {
			t.Fatal(err)
		}
		t.wantRuns(1)
	}},
	{"TellsWhatStillRuns", func(t *trial) {
		account := t.account()
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{account}}, g.first)
		first := t.start(t.Context(), t.request("k"))
		handler := g.arrival()
		ended, end := context.WithCancel(t.Context())
		end()
		if err := account.Close(ended); err == nil {
			t.Fatal("Close says nothing of the handler that runs")
		}
		receive(t, handler.Done(), "the end of the handler's context")
		if cause := context.Cause(handler); !errors.Is(cause, dedupe.ErrLeaseLost) || !errors.Is(cause, dedupe.ErrClosed) {
			t.Fatalf("the cause is %v", cause)
		}
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(1)
	}},
}
