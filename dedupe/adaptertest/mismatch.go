package adaptertest

import (
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var mismatchScenarios = []scenario{
	{"AfterTheFirst", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.proceed(1, t.request("k"))
		t.refuse(dedupe.KeyReused, t.otherText("k"))
		t.replay(1, t.request("k"))
		t.wantRuns(1)
	}},
	{"InFlight", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, g.first)
		first := g.occupy(t.request("k"))
		t.refuse(dedupe.KeyReused, t.otherText("k"))
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(1)
	}},
	{"DoesNotWait", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithWait(2 * patience))}}, g.first)
		first := g.occupy(t.request("k"))
		t.refuse(dedupe.KeyReused, t.otherText("k"))
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(1)
	}},
	{"AnotherResource", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.proceed(1, t.request("k"))
		other := t.request("k")
		other.Resource = t.resource("8")
		t.refuse(dedupe.KeyReused, other)
		t.wantRuns(1)
	}},
	{"AnotherField", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		r := t.request("k")
		r.Other = t.resource("8")
		t.proceed(1, r)
		r.Other = t.resource("9")
		t.refuse(dedupe.KeyReused, r)
		t.wantRuns(1)
	}},
	{"AFingerprintOfOnesOwn", func(t *trial) {
		constant := func(dedupe.Request) ([]byte, error) { return []byte("the same"), nil }
		t.serve(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithFingerprint(constant), dedupe.WithRetention(time.Hour))}})
		t.proceed(1, t.request("k"))
		t.replay(1, t.otherText("k"))
		t.wantRuns(1)
	}},
}

// otherText is a request with another payload.
func (t *trial) otherText(key string) Request {
	r := t.request(key)
	r.Text = "11 EUR"
	return r
}
