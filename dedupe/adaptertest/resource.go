package adaptertest

import (
	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

var resourceScenarios = []scenario{
	{"BothAreLocked", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.transfers()}}, g.first)
		first := g.occupy(t.transfer("7", "8"))
		t.refuse(dedupe.Locked, t.transfer("7", "9"))
		t.refuse(dedupe.Locked, t.transfer("9", "7"))
		t.refuse(dedupe.Locked, t.transfer("8", "9"))
		t.refuse(dedupe.Locked, t.transfer("9", "8"))
		t.proceed(2, t.transfer("9", "10"))
		t.wantAnswer(1, false, g.release(first))
		t.proceed(3, t.transfer("8", "7"))
		t.wantRuns(3)
	}},
	{"AllOrNone", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.transfers()}}, g.first)
		first := g.occupy(t.transfer("7", "8"))
		t.refuse(dedupe.Locked, t.transfer("8", "9"))
		t.refuse(dedupe.Locked, t.transfer("9", "8"))
		t.proceed(2, t.transfer("9", "10"))
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(2)
	}},
	{"Crossing", func(t *trial) {
		t.serveWith(Mount{Route: []*dedupe.Guard{t.transfers(dedupe.WithWait(patience))}}, func(run) Answer { return Answer{} })
		for _, got := range t.together(10, func(i int) Request {
			if i%2 == 0 {
				return t.transfer("7", "8")
			}
			return t.transfer("8", "7")
		}) {
			if got.err != nil || got.Status != OK {
				t.Fatalf("got %+v", got)
			}
		}
		t.wantRuns(10)
	}},
	{"TwiceTheSame", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.transfers()}})
		t.proceed(1, t.transfer("7", "7"))
		t.proceed(2, t.transfer("7", "7"))
		t.wantRuns(2)
	}},
	{"OneIsMissing", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.transfers()}})
		t.refuse(dedupe.KeyMissing, t.request("k"))
		t.wantRuns(0)
	}},
	{"OneIsMissingAndOptional", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.transfers(dedupe.WithOptionalKey())}}, g.first)
		first := g.occupy(t.request("k"))
		t.refuse(dedupe.Locked, t.transfer("8", "7"))
		t.proceed(2, t.transfer("8", "9"))
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(2)
	}},
	{"InGroupAndRoute", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Group: []*dedupe.Guard{t.account()}, Route: []*dedupe.Guard{t.transfers()}}, g.first)
		first := g.occupy(t.transfer("7", "8"))
		t.refuse(dedupe.Locked, t.transfer("8", "9"))
		t.refuse(dedupe.Locked, t.transfer("9", "7"))
		t.wantAnswer(1, false, g.release(first))
		t.proceed(2, t.transfer("8", "7"))
		t.wantRuns(2)
	}},
}

// transfers returns a Serialize on both resources of a request.
func (t *trial) transfers(options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	return t.account(append(options, dedupe.WithAlso(keyfuncs.Field(OtherField)))...)
}

func (t *trial) transfer(from, to string) Request {
	r := t.request("k")
	r.Resource, r.Other = t.resource(from), t.resource(to)
	return r
}
