package adaptertest

import (
	"errors"

	"github.com/interlock-go/interlock/dedupe"
)

var failureScenarios = []scenario{
	{"ToldAsWithoutGuards", func(t *trial) {
		t.eachFailure(func(t *trial, failure Failure, bare Reply) {
			t.serveFailing(Mount{Route: []*dedupe.Guard{t.account()}}, failure)
			t.wantFailure(bare, false)
			t.wantFailure(bare, false)
			t.wantRuns(3) // with the one without guards
		})
	}},
	{"KeptIfItIsAVerdict", func(t *trial) {
		t.eachFailure(func(t *trial, failure Failure, bare Reply) {
			t.serveFailing(Mount{Route: []*dedupe.Guard{t.once(), t.account()}}, failure)
			t.wantKept(failure, bare)
		})
	}},
	{"KeptInTheGroup", func(t *trial) {
		t.eachFailure(func(t *trial, failure Failure, bare Reply) {
			t.serveFailing(Mount{Group: []*dedupe.Guard{t.once()}, Route: []*dedupe.Guard{t.account()}}, failure)
			t.wantKept(failure, bare)
		})
	}},
	{"KeptOnTheRoute", func(t *trial) {
		t.eachFailure(func(t *trial, failure Failure, bare Reply) {
			t.serveFailing(Mount{Group: []*dedupe.Guard{t.account()}, Route: []*dedupe.Guard{t.once()}}, failure)
			t.wantKept(failure, bare)
		})
	}},
	{"KeptWithItsHeaders", func(t *trial) {
		t.eachFailure(func(t *trial, failure Failure, bare Reply) {
			t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, func(run) Answer {
				return Answer{Failure: failure.Name, Kept: "/problems/1", Unkept: "of one request"}
			})
			bare.Kept, bare.Unkept = "/problems/1", "of one request"
			t.wantFailure(bare, false)
			if failure.Kept {
				bare.Unkept = ""
				t.wantFailure(bare, true)
			}
			t.wantRuns(2) // with the one without guards
		})
	}},
	{"PlainErrorIsNotKept", func(t *trial) {
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, func(r run) Answer {
			if r.number == 1 {
				return Answer{Err: errors.New("the account is short of money")}
			}
			return r.answer()
		})
		t.wantTrouble(t.send(t.Context(), t.request("k")))
		t.proceed(2, t.request("k"))
		t.replay(2, t.request("k"))
		t.wantRuns(2)
	}},
	{"FreesTheResource", func(t *trial) {
		t.serveWith(Mount{Route: []*dedupe.Guard{t.account()}}, func(r run) Answer {
			if r.number == 1 {
				return Answer{Err: errors.New("the account is short of money")}
			}
			return r.answer()
		})
		t.wantTrouble(t.send(t.Context(), t.request("k")))
		t.proceed(2, t.request("k"))
		t.wantRuns(2)
	}},
	{"MayComeFirst", func(t *trial) {
		t.eachFailure(func(t *trial, failure Failure, bare Reply) {
			t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, func(r run) Answer {
				if r.number == 2 { // the first was without guards
					return Answer{Failure: failure.Name}
				}
				return r.answer()
			})
			t.wantFailure(bare, false)
			if failure.Kept {
				t.wantFailure(bare, true)
				t.wantRuns(2)
				return
			}
			t.proceed(3, t.request("k"))
			t.replay(3, t.request("k"))
			t.wantRuns(3)
		})
	}},
}

// eachFailure calls test for every failure, with what a client is told of it without guards: by the
// first run of the handler.
func (t *trial) eachFailure(test func(t *trial, failure Failure, bare Reply)) {
	t.Helper()
	for _, failure := range t.adapter.Failures {
		t.Logf("the failure is %s", failure.Name)
		t := newTrial(t.TB, t.adapter, t.store)
		t.serveFailing(Mount{}, failure)
		bare := t.send(t.Context(), t.request("k"))
		if bare.err != nil || bare.Status != failure.Status || bare.outcome() != dedupe.Proceed {
			t.Fatalf("without guards the client gets %+v; want the status %q", bare, failure.Status)
		}
		test(t, failure, bare.Reply)
	}
}

// serveFailing mounts a handler that always fails.
func (t *trial) serveFailing(m Mount, failure Failure) {
	t.Helper()
	t.serveWith(m, func(run) Answer { return Answer{Failure: failure.Name} })
}

// wantFailure sends a request that is to get what bare says.
func (t *trial) wantFailure(bare Reply, replayed bool) {
	t.Helper()
	bare.Replayed = replayed
	if got := t.send(t.Context(), t.request("k")); got.err != nil || got.Reply != bare {
		t.Fatalf("got  %+v\nwant %+v", got, bare)
	}
}

// wantKept sends a request twice.
func (t *trial) wantKept(failure Failure, bare Reply) {
	t.Helper()
	t.wantFailure(bare, false)
	t.wantFailure(bare, failure.Kept)
	if failure.Kept {
		t.wantRuns(2) // with the one without guards
	} else {
		t.wantRuns(3)
	}
}

// wantTrouble checks that a client is told of an error, and of no decision of a guard.
func (t *trial) wantTrouble(got outcome) {
	t.Helper()
	if got.err != nil || got.Status == OK || got.outcome() != dedupe.Proceed {
		t.Fatalf("got %+v; want an error of the handler", got)
	}
}
