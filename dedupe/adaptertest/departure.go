package adaptertest

import (
	"context"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

var departureScenarios = []scenario{
	{"AnswerIsKept", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, g.first)
		t.leave(g, t.request("k"))
		t.refuse(dedupe.InFlight, t.request("k"))
		g.open()
		t.wantAnswer(1, true, t.until(t.request("k"), dedupe.InFlight))
		t.wantRuns(1)
	}},
	{"AnswerIsKeptOfBothGuards", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Group: []*dedupe.Guard{t.once()}, Route: []*dedupe.Guard{t.account()}}, g.first)
		t.leave(g, t.request("k"))
		g.open()
		t.wantAnswer(1, true, t.until(t.request("k"), dedupe.InFlight))
		t.wantRuns(1)
	}},
	{"HandlerThatGivesUpIsNotKept", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, func(r run) Answer {
			if r.number > 1 {
				return r.answer()
			}
			g.entered <- r
			<-r.Done()
			return Answer{Err: r.Err()}
		})
		t.leave(g, t.request("k"))
		t.wantAnswer(2, false, t.until(t.request("k"), dedupe.InFlight))
		t.replay(2, t.request("k"))
		t.wantRuns(2)
	}},
	{"ResourceStaysLocked", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.account()}}, g.first)
		t.leave(g, t.request("k"))
		t.refuse(dedupe.Locked, t.request("k"))
		t.wantRuns(1)
		g.open()
		t.wantAnswer(2, false, t.until(t.request("k"), dedupe.Locked))
	}},
	{"DetachedWorkGoesOn", func(t *trial) {
		g := t.newGate()
		detached := make(chan error, 1)
		t.serveWith(Mount{Route: []*dedupe.Guard{t.account()}}, func(r run) Answer {
			ctx := dedupe.Detach(r)
			g.first(r)
			detached <- ctx.Err()
			return r.answer()
		})
		t.leave(g, t.request("k"))
		g.open()
		if err := receive(t, detached, "the detached work"); err != nil {
			t.Fatalf("its context has ended: %v", err)
		}
		t.wantRuns(1)
	}},
	{"OfAWaiterForTheAnswer", func(t *trial) {
		t.leavesLine(dedupe.InFlight, func(key dedupe.KeyFunc, options ...dedupe.Option) (*dedupe.Guard, error) {
			return dedupe.Once(t.store, keyfuncs.Anyone, key, options...)
		})
	}},
	// The key is in the payload: net/http notices that a client has left once it has read the body.
	{"OfAWaiterForTheResource", func(t *trial) {
		t.leavesLine(dedupe.Locked, func(key dedupe.KeyFunc, options ...dedupe.Option) (*dedupe.Guard, error) {
			return dedupe.Serialize(t.store, "account", keyfuncs.Join(key, keyfuncs.Field(OtherField)), options...)
		})
	}},
}

// leave sends a request and hangs up when its handler runs. It returns when the handler's context has
// ended.
func (t *trial) leave(g *gate, r Request) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	replies := t.start(ctx, r)
	handler := g.arrival()
	cancel()
	if got := receive(t, replies, "the end of the request"); got.err == nil {
		t.Fatalf("got %+v; want no reply", got)
	}
	receive(t, handler.Done(), "the end of the handler's context")
}

// leavesLine hangs up on a request that waits for another one, which goes on.
func (t *trial) leavesLine(want dedupe.Outcome, guarded func(dedupe.KeyFunc, ...dedupe.Option) (*dedupe.Guard, error)) {
	t.Helper()
	arrivals, refused := make(chan struct{}, 2), make(chan dedupe.Outcome, 2)
	key := func(dedupe.Request) (string, error) {
		arrivals <- struct{}{}
		return t.id, nil
	}
	observe := func(event dedupe.Event) {
		if event.Kind == dedupe.EventDecided && event.Outcome != dedupe.Proceed {
			refused <- event.Outcome
		}
	}
	guard := t.guarded(guarded(key, dedupe.WithWait(2*patience), dedupe.WithObserver(observe)))
	g := t.newGate()
	t.serveWith(Mount{Route: []*dedupe.Guard{guard}}, g.first)
	r := t.transfer("7", "8")
	first := g.occupy(r)
	receive(t, arrivals, "the first request")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	second := t.start(ctx, r)
	receive(t, arrivals, "the waiter")
	cancel()
	if got := receive(t, second, "the end of the waiter"); got.err == nil {
		t.Fatalf("got %+v; want no reply", got)
	}
	// It may have left before it asked the store, which then cannot be asked.
	if got := receive(t, refused, "the refusal of the waiter"); got != want && got != dedupe.StoreUnavailable {
		t.Fatalf("the waiter is refused as %v", got)
	}
	t.wantAnswer(1, false, g.release(first))
	t.wantRuns(1)
}
