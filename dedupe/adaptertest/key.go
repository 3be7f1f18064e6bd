package adaptertest

import (
	"errors"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

var keyScenarios = []scenario{
	{"Missing", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.refuse(dedupe.KeyMissing, t.keyed())
		t.wantRuns(0)
	}},
	{"WithAComma", func(t *trial) { t.invalidKey("comma", t.key("a")+","+t.key("b")) }},
	{"OnTwoLines", func(t *trial) { t.invalidKey("", t.key("a"), t.key("a")) }},
	{"TooLong", func(t *trial) { t.invalidKey("255", strings.Repeat("k", 256)) }},
	{"Empty", func(t *trial) { t.invalidKey("", "") }},
	{"MissingCaller", func(t *trial) {
		guard := t.guarded(dedupe.Once(t.store, keyfuncs.Header(CallerHeader), keyfuncs.Header(KeyHeader)))
		t.serve(Mount{Route: []*dedupe.Guard{guard}})
		t.refuse(dedupe.KeyMissing, t.request("k"))
		t.wantRuns(0)
		r := t.request("k")
		r.Caller = "alice"
		t.proceed(1, r)
		t.wantRuns(1)
	}},
	{"InvalidCaller", func(t *trial) {
		guard := t.guarded(dedupe.Once(t.store, failing(&dedupe.KeyError{Source: "token of the caller", Problem: "has run out"}), keyfuncs.Header(KeyHeader)))
		t.serve(Mount{Route: []*dedupe.Guard{guard}})
		if got := t.refuse(dedupe.KeyInvalid, t.request("k")); !strings.Contains(got.Detail, "has run out") {
			t.Fatalf("the client is told %q", got.Detail)
		}
		t.wantRuns(0)
	}},
	{"CauseIsNotTold", func(t *trial) {
		guard := t.guarded(dedupe.Serialize(t.store, "account", failing(errors.New("no route to "+secret))))
		t.serve(Mount{Route: []*dedupe.Guard{guard}})
		t.refuse(dedupe.KeyInvalid, t.request("k"))
		t.wantRuns(0)
	}},
	{"OfAField", func(t *trial) {
		g := t.newGate()
		guard := t.guarded(dedupe.Serialize(t.store, "account", keyfuncs.Field(OtherField)))
		t.serveWith(Mount{Route: []*dedupe.Guard{guard}}, g.first)
		r := t.request("k")
		t.refuse(dedupe.KeyMissing, r)
		t.wantRuns(0)
		r.Other = t.resource("8")
		first := g.occupy(r)
		t.refuse(dedupe.Locked, r)
		other := r
		other.Other = t.resource("9")
		t.proceed(2, other)
		t.wantAnswer(1, false, g.release(first))
		t.proceed(3, r)
		t.wantRuns(3)
	}},
	{"OfThePayload", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.byPayload()}})
		t.proceed(1, t.request("k"))
		t.replay(1, t.request("l"))
		t.proceed(2, t.otherText("k"))
		t.wantRuns(2)
	}},
	{"OfTheOperation", func(t *trial) {
		g := t.newGate()
		guard := t.guarded(dedupe.Serialize(t.store, t.id, keyfuncs.Operation))
		t.serveWith(Mount{Route: []*dedupe.Guard{guard}}, g.first)
		first := g.occupy(t.request("k"))
		other := t.request("k")
		other.Resource = t.resource("8")
		t.refuse(dedupe.Locked, other)
		other.Operation = Deposit
		t.proceed(2, other)
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(2)
	}},
}

// keyed is a request with these lines for its key.
func (t *trial) keyed(lines ...string) Request {
	r := t.request("")
	r.Keys = lines
	return r
}

// invalidKey checks that a key of these lines is refused, and that the client is told why.
func (t *trial) invalidKey(why string, lines ...string) {
	t.Helper()
	t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
	if got := t.refuse(dedupe.KeyInvalid, t.keyed(lines...)); got.Detail == "" || !strings.Contains(got.Detail, why) {
		t.Fatalf("the client is told %q; want something with %q", got.Detail, why)
	}
	t.wantRuns(0)
}

func failing(err error) dedupe.KeyFunc {
	return func(dedupe.Request) (string, error) { return "", err }
}
