package adaptertest

import (
	"context"
	"runtime"

	"github.com/interlock-go/interlock/dedupe"
)

var panicScenarios = []scenario{
	{"RecoveredOutside", func(t *trial) { t.panics(Mount{Route: []*dedupe.Guard{t.once()}, Recover: Outside}) }},
	{"RecoveredInside", func(t *trial) { t.panics(Mount{Route: []*dedupe.Guard{t.once()}, Recover: Inside}) }},
	{"RecoveredOutsideOfBothGuards", func(t *trial) {
		t.panics(Mount{Route: []*dedupe.Guard{t.once(), t.account()}, Recover: Outside})
	}},
	{"RecoveredInsideOfBothGuards", func(t *trial) {
		t.panics(Mount{Route: []*dedupe.Guard{t.once(), t.account()}, Recover: Inside})
	}},
	{"RecoveredOutsideOfGroupAndRoute", func(t *trial) {
		t.panics(Mount{Group: []*dedupe.Guard{t.once()}, Route: []*dedupe.Guard{t.account()}, Recover: Outside})
	}},
	{"NotRecovered", func(t *trial) {
		if !t.adapter.Survives {
			t.Skip("the server does not survive it")
		}
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once(), t.account()}}, panicFirst)
		if got := t.send(t.Context(), t.request("k")); got.err == nil {
			t.Fatalf("got %+v; want no reply", got)
		}
		t.wantAnswer(2, false, t.until(t.request("k"), dedupe.InFlight))
		t.replay(2, t.request("k"))
		t.wantRuns(2)
	}},
	{"WaiterRuns", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithWait(patience))}, Recover: Outside}, func(r run) Answer {
			g.first(r)
			return panicFirst(r)
		})
		first := g.occupy(t.request("k"))
		second := t.start(t.Context(), t.request("k"))
		t.wantTrouble(g.release(first))
		t.wantAnswer(2, false, receive(t, second, "the second reply"))
		t.wantRuns(2)
	}},
	{"GoexitUnderAOnce", func(t *trial) { t.exits(dedupe.InFlight, t.once()) }},
	{"GoexitUnderASerialize", func(t *trial) { t.exits(dedupe.Locked, t.account()) }},
	{"GoexitUnderBoth", func(t *trial) { t.exits(dedupe.InFlight, t.once(), t.account()) }},
}

// panics checks that a client is told of a panic, and that a repeat runs and is kept.
func (t *trial) panics(m Mount) {
	t.Helper()
	t.serveWith(m, panicFirst)
	t.wantTrouble(t.send(t.Context(), t.request("k")))
	t.proceed(2, t.request("k"))
	t.replay(2, t.request("k"))
	t.wantRuns(2)
}

func panicFirst(r run) Answer {
	if r.number == 1 {
		panic("the first run panics")
	}
	return r.answer()
}

// exits checks that a repeat runs when the handler's goroutine has ended. Whether the first client is
// told is the server's business.
func (t *trial) exits(before dedupe.Outcome, guards ...*dedupe.Guard) {
	t.Helper()
	t.serveWith(Mount{Route: guards}, func(r run) Answer {
		if r.number == 1 {
			runtime.Goexit()
		}
		return r.answer()
	})
	ctx, cancel := context.WithCancel(t.Context())
	first := t.start(ctx, t.request("k"))
	t.await("the first run", func() bool { return t.runs.Load() > 0 })
	t.wantAnswer(2, false, t.until(t.request("k"), before))
	cancel()
	if got := receive(t, first, "the end of the first request"); got.err == nil {
		t.Fatalf("got %+v; want no reply", got)
	}
	t.wantRuns(2)
}
