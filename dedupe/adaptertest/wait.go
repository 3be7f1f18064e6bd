package adaptertest

import (
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// little is a budget that is over while a handler stays at its gate.
const little = 20 * time.Millisecond

var waitScenarios = []scenario{
	{"LongEnoughForTheResource", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.account(dedupe.WithWait(2 * patience))}}, g.first)
		first := g.occupy(t.request("k"))
		second := t.start(t.Context(), t.request("l"))
		t.proceed(2, t.elsewhere())
		t.wantRuns(2)
		t.wantAnswer(1, false, g.release(first))
		t.wantAnswer(3, false, receive(t, second, "the waiter's reply"))
	}},
	{"TooShortForTheResource", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.account(dedupe.WithWait(little))}}, g.first)
		first := g.occupy(t.request("k"))
		t.refuse(dedupe.Locked, t.request("l"))
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(1)
	}},
	{"LongEnoughForTheAnswer", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithWait(2 * patience))}}, g.first)
		first := g.occupy(t.request("k"))
		second := t.start(t.Context(), t.request("k"))
		t.proceed(2, t.request("l"))
		t.wantAnswer(1, false, g.release(first))
		t.wantAnswer(1, true, receive(t, second, "the waiter's reply"))
		t.wantRuns(2)
	}},
	{"TooShortForTheAnswer", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithWait(little))}}, g.first)
		first := g.occupy(t.request("k"))
		t.refuse(dedupe.InFlight, t.request("k"))
		t.wantAnswer(1, false, g.release(first))
		t.replay(1, t.request("k"))
		t.wantRuns(1)
	}},
	{"RunsAfterAFailure", func(t *trial) {
		g := t.newGate()
		unkept := t.unkept()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithWait(2 * patience))}}, func(r run) Answer {
			g.first(r)
			if r.number == 1 {
				return Answer{Failure: unkept.Name}
			}
			return r.answer()
		})
		first := g.occupy(t.request("k"))
		second := t.start(t.Context(), t.request("k"))
		t.wantTrouble(g.release(first))
		t.wantAnswer(2, false, receive(t, second, "the waiter's reply"))
		t.wantRuns(2)
	}},
	{"OnlySoMany", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.account(dedupe.WithWait(2*patience), dedupe.WithMaxWaiters(1))}}, g.first)
		first := g.occupy(t.request("k"))
		waiters := make(chan outcome, 2)
		for range cap(waiters) {
			go func() { waiters <- t.send(t.Context(), t.request("l")) }()
		}
		t.wantRefusal(dedupe.Locked, receive(t, waiters, "the reply to the second waiter"))
		t.wantRuns(1)
		t.wantAnswer(1, false, g.release(first))
		t.wantAnswer(2, false, receive(t, waiters, "the reply to the first waiter"))
	}},
}

// elsewhere is a request for another resource.
func (t *trial) elsewhere() Request {
	r := t.request("elsewhere")
	r.Resource = t.resource("8")
	return r
}
