package adaptertest

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/dedupe"
)

// gate is where handlers wait until a scenario lets them go on.
type gate struct {
	trial   *trial
	entered chan context.Context
	leave   chan struct{}
	open    func()
}

func (t *trial) newGate() *gate {
	g := &gate{trial: t, entered: make(chan context.Context, 1000), leave: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.leave) })
	return g
}

// wait says that a handler is here, and returns when the gate is open.
func (g *gate) wait(ctx context.Context) {
	g.entered <- ctx
	select {
	case <-g.leave:
	case <-g.trial.over:
	}
}

// first is a handler whose first run waits at the gate.
func (g *gate) first(r run) Answer {
	if r.number == 1 {
		g.wait(r)
	}
	return r.answer()
}

// arrival returns the context of a handler that has come to the gate.
func (g *gate) arrival() context.Context {
	g.trial.Helper()
	return receive(g.trial, g.entered, "the handler to run")
}

// occupy sends a request whose handler stays at the gate.
func (g *gate) occupy(r Request) <-chan outcome {
	g.trial.Helper()
	replies := g.trial.start(g.trial.Context(), r)
	g.arrival()
	return replies
}

// admitted sends a request under a brief lease, and returns the context of its handler, which stays at
// the gate. On a machine that stops for so long, the lease may be over before the handler runs: the
// store is then taken for unavailable, and the request sent again.
func (g *gate) admitted(r Request) (<-chan outcome, context.Context) {
	g.trial.Helper()
	for {
		replies := g.trial.start(g.trial.Context(), r)
		select {
		case handler := <-g.entered:
			return replies, handler
		case got := <-replies:
			if got.err != nil || got.Refused != dedupe.StoreUnavailable && got.Refused != dedupe.Locked {
				g.trial.Fatalf("got %+v; want the handler to run", got)
			}
		}
	}
}

// release opens the gate and returns the reply of a request that was held there.
func (g *gate) release(replies <-chan outcome) outcome {
	g.trial.Helper()
	g.open()
	return receive(g.trial, replies, "the reply to the request at the gate")
}
