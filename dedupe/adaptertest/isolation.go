package adaptertest

import (
	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

var isolationScenarios = []scenario{
	{"Callers", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.apart(t.of("alice"), t.of("bob"))
	}},
	{"CallersByValue", func(t *trial) {
		guard := t.guarded(dedupe.Once(t.store, t.adapter.Caller, keyfuncs.Header(KeyHeader)))
		t.serve(Mount{Route: []*dedupe.Guard{guard}})
		t.refuse(dedupe.KeyMissing, t.request("k"))
		t.apart(t.of("alice"), t.of("bob"))
	}},
	{"CallersInFlight", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, g.first)
		first := g.occupy(t.of("alice"))
		t.proceed(2, t.of("bob"))
		t.refuse(dedupe.InFlight, t.of("alice"))
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(2)
	}},
	{"CallersPayloads", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.proceed(1, t.of("alice"))
		bobs := t.of("bob")
		bobs.Text = "another payload"
		t.proceed(2, bobs)
		t.wantRuns(2)
	}},
	{"Operations", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		deposit := t.request("k")
		deposit.Operation = Deposit
		t.apart(t.request("k"), deposit)
	}},
	{"OperationsOfOneName", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithOperation("payment"))}})
		t.proceed(1, t.request("k"))
		deposit := t.request("k")
		deposit.Operation = Deposit
		t.refuse(dedupe.KeyReused, deposit) // what is addressed is a part of the payload
		t.wantRuns(1)
	}},
	{"LockDomains", func(t *trial) {
		g := t.newGate()
		order := t.guarded(dedupe.Serialize(t.store, "order", keyfuncs.Header(KeyHeader)))
		account := t.guarded(dedupe.Serialize(t.store, "account", keyfuncs.Header(CallerHeader)))
		t.serveWith(Mount{Route: []*dedupe.Guard{order, account}}, g.first)
		r := t.request("k")
		r.Caller = t.id
		first := g.occupy(r)
		r.Keys, r.Caller = []string{t.id}, t.key("k") // the same two, crosswise
		t.proceed(2, r)
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(2)
	}},
}

// of is a request of a caller. Its key does not depend on the caller.
func (t *trial) of(caller string) Request {
	r := t.request("k")
	r.Caller = caller
	return r
}

// apart checks that two requests are two, and that each gets its own answer.
func (t *trial) apart(a, b Request) {
	t.Helper()
	t.proceed(1, a)
	t.proceed(2, b)
	t.replay(1, a)
	t.replay(2, b)
	t.wantRuns(2)
}
