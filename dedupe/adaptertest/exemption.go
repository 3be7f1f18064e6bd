package adaptertest

import "github.com/interlock-go/interlock/dedupe"

var exemptionScenarios = []scenario{
	{"NoGuards", func(t *trial) {
		t.serve(Mount{})
		t.proceed(1, t.request("k"))
		t.proceed(2, t.request("k"))
		t.wantRuns(2)
	}},
	{"OptionalKeyThatIsMissing", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithOptionalKey())}})
		t.proceed(1, t.keyed())
		t.proceed(2, t.keyed())
		t.wantRuns(2)
	}},
	{"OptionalKeyThatIsThere", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithOptionalKey())}})
		t.proceed(1, t.request("k"))
		t.replay(1, t.request("k"))
		t.wantRuns(1)
	}},
	{"OptionalKeyThatIsInvalid", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithOptionalKey())}})
		t.refuse(dedupe.KeyInvalid, t.keyed(t.key("a"), t.key("b")))
		t.wantRuns(0)
	}},
	{"Skipped", func(t *trial) {
		skip := func(r dedupe.Request) bool { return len(r.Header(CallerHeader)) > 0 }
		t.serve(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithSkip(skip))}})
		t.proceed(1, t.of("alice"))
		t.proceed(2, t.of("alice"))
		t.proceed(3, t.request("k"))
		t.replay(3, t.request("k"))
		t.wantRuns(3)
	}},
	{"SafeOperation", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once(), t.account()}}, g.first)
		first := g.occupy(t.request("k"))
		t.proceed(2, t.look())
		t.proceed(3, t.look())
		t.proceed(4, t.keyed().as(Look))
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(4)
	}},
	{"SafeOperationThatIsGuarded", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithSafeMethods())}})
		t.proceed(1, t.look())
		t.replay(1, t.look())
		t.wantRuns(1)
	}},
}

// look is a request for the safe operation.
func (t *trial) look() Request { return t.request("k").as(Look) }

// as is the request for another operation.
func (r Request) as(o Operation) Request {
	r.Operation = o
	if o == Look {
		r.Other, r.Text = "", ""
	}
	return r
}
