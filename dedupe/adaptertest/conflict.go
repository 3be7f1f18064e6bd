package adaptertest

import "github.com/interlock-go/interlock/dedupe"

var conflictScenarios = []scenario{
	{"RepeatInFlight", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, g.first)
		first := g.occupy(t.request("k"))
		t.refuse(dedupe.InFlight, t.request("k"))
		t.wantAnswer(1, false, g.release(first))
		t.replay(1, t.request("k"))
		t.wantRuns(1)
	}},
	{"AnotherKeyInFlight", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, g.first)
		first := g.occupy(t.request("k"))
		t.proceed(2, t.request("l"))
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(2)
	}},
	{"ResourceLocked", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.account()}}, g.first)
		first := g.occupy(t.request("k"))
		t.refuse(dedupe.Locked, t.request("l"))
		t.wantAnswer(1, false, g.release(first))
		t.proceed(2, t.request("l"))
		t.wantRuns(2)
	}},
	{"AnotherResource", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.account()}}, g.first)
		first := g.occupy(t.request("k"))
		other := t.request("k")
		other.Resource = t.resource("8")
		t.proceed(2, other)
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(2)
	}},
	{"ResourceLockedByAnotherOperation", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.account()}}, g.first)
		first := g.occupy(t.request("k"))
		deposit := t.request("l")
		deposit.Operation = Deposit
		t.refuse(dedupe.Locked, deposit)
		t.wantAnswer(1, false, g.release(first))
		t.proceed(2, deposit)
		t.wantRuns(2)
	}},
	{"SerializeKeepsNothing", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.account()}})
		t.proceed(1, t.request("k"))
		t.proceed(2, t.request("k"))
		t.wantRuns(2)
	}},
}
