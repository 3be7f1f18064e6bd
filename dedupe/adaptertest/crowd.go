package adaptertest

import (
	"sync/atomic"

	"github.com/interlock-go/interlock/dedupe"
)

var crowdScenarios = []scenario{
	{"DuplicatesInFlight", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, g.first)
		replies := make(chan outcome, crowd)
		for range crowd {
			go func() { replies <- t.send(t.Context(), t.request("k")) }()
		}
		for range crowd - 1 {
			t.wantRefusal(dedupe.InFlight, receive(t, replies, "the reply to a duplicate"))
		}
		t.wantAnswer(1, false, g.release(replies))
		t.replay(1, t.request("k"))
		t.wantRuns(1)
	}},
	{"DuplicatesThatWait", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithWait(patience))}})
		replayed := 0
		for _, got := range t.together(crowd, func(int) Request { return t.request("k") }) {
			t.wantAnswer(1, got.Replayed, got)
			if got.Replayed {
				replayed++
			}
		}
		if replayed != crowd-1 {
			t.Fatalf("%d of %d were replayed", replayed, crowd)
		}
		t.wantRuns(1)
	}},
	{"DuplicatesOfAFailure", func(t *trial) {
		const failures = 3
		unkept := t.unkept()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithWait(patience))}}, func(r run) Answer {
			if r.number <= failures {
				return Answer{Failure: unkept.Name}
			}
			return r.answer()
		})
		failed, replayed := 0, 0
		for _, got := range t.together(10, func(int) Request { return t.request("k") }) {
			switch {
			case got.Status == unkept.Status && got.outcome() == dedupe.Proceed:
				failed++
			case got.Replayed:
				replayed++
				t.wantAnswer(failures+1, true, got)
			default:
				t.wantAnswer(failures+1, false, got)
			}
		}
		if failed != failures || replayed != 10-failures-1 {
			t.Fatalf("%d failed and %d were replayed", failed, replayed)
		}
		t.wantRuns(failures + 1)
	}},
	{"WritersOfOneResource", func(t *trial) {
		var inside, most atomic.Int32
		balance := 0 // the race detector sees to it as well
		t.serveWith(Mount{Route: []*dedupe.Guard{t.account(dedupe.WithWait(patience))}}, func(run) Answer {
			if inside.Add(1) > 1 {
				most.Store(2)
			}
			defer inside.Add(-1)
			balance++
			return Answer{}
		})
		for _, got := range t.together(20, func(int) Request { return t.request("k") }) {
			if got.err != nil || got.Status != OK || got.outcome() != dedupe.Proceed {
				t.Fatalf("got %+v", got)
			}
		}
		t.wantRuns(20)
		if most.Load() > 1 || balance != 20 {
			t.Fatalf("two ran at the same time, or the balance is not 20 but %d", balance)
		}
	}},
	{"ManyKeys", func(t *trial) {
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, func(r run) Answer { return Answer{Text: r.text} })
		request := func(i int) Request {
			r := t.request(textOf(int64(i / 2))) // each one twice
			r.Text = textOf(int64(i / 2))
			return r
		}
		for range 2 { // the second time, all are replayed
			for i, got := range t.together(crowd, request) {
				if got.outcome() != dedupe.InFlight && got.Body != textOf(int64(i/2)) {
					t.Fatalf("request %d got %+v", i, got)
				}
			}
			t.wantRuns(crowd / 2)
		}
	}},
}

// unkept returns a failure that is not kept.
func (t *trial) unkept() Failure {
	t.Helper()
	for _, failure := range t.adapter.Failures {
		if !failure.Kept {
			return failure
		}
	}
	t.Fatal("all failures are kept")
	return Failure{}
}
