package waiting

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// scenarios are what must hold on one server and in a cluster alike.
var scenarios = []struct {
	name string
	test func(t *testing.T, w watch)
}{
	{"Turns", turns},
	{"DeadInLine", deadInLine},
	{"AllDead", allDead},
	{"StoppedInLine", stoppedInLine},
	{"DeadHolder", deadHolder},
	{"StoppedHolder", stoppedHolder},
	{"LeavingTheLine", leavingTheLine},
	{"NeverBarge", neverBarge},
	{"RepeatsShare", repeatsShare},
	{"FailureRunsOne", failureRunsOne},
	{"DeathRunsOne", deathRunsOne},
	{"Lingering", lingering},
}

func TestOnServer(t *testing.T) {
	t.Parallel()
	runScenarios(t, siteOf(redistest.Start(t)))
}

func TestInCluster(t *testing.T) {
	t.Parallel()
	runScenarios(t, site{Addrs: redistest.StartCluster(t, 3).Addrs(), Cluster: true})
}

func runScenarios(t *testing.T, s site) {
	for _, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()
			own := s
			own.Prefix = newPrefix()
			scenario.test(t, own.watch(t))
		})
	}
}

// turns has 32 goroutines in 4 processes take turns. Each sees whether it is alone and its fence above
// all before it, and counts how many others had a turn while it waited: 31 if all of them come round in
// order, some more because those of one process come one after the other. Where they race for the key
// there is no bound.
func turns(t *testing.T, w watch) {
	const goroutines, rounds = 8, 30
	children := make([]process, 4)
	for i := range children {
		children[i] = w.child(t, long)
	}
	r := request{Kind: cycles, Key: "key", Wait: wait, Round: &round{
		Ledger: newLedger(t), Goroutines: goroutines, Cycles: rounds, Hold: time.Millisecond,
	}}
	everybody := len(children) * goroutines
	for _, a := range w.race(t, r, children...) {
		e := <-a.ended
		if e.Outcome != "done" {
			t.Errorf("the attempt ended with %+v, want done", e)
		}
		if e.Tally.PassedBy > uint64(10*everybody) {
			t.Errorf("%d others had a turn while one of %d waited", e.Tally.PassedBy, everybody)
		}
		t.Logf("%d others had a turn while one waited, at most; %v in all", e.Tally.PassedBy, e.Waited)
	}
	_, grants, err := r.Round.Ledger.read()
	succeed(t, err)
	if want := uint64(everybody * rounds); grants != want {
		t.Errorf("%d grants, want %d", grants, want)
	}
	w.awaitFree(t)
}

// race has processes begin at one moment: when all of them wait in line.
func (w watch) race(t *testing.T, r request, processes ...process) []*attempt {
	t.Helper()
	holder := w.member(t, long).begin(request{Kind: lock, Key: r.Key})
	holder.awaitGrant(t)
	attempts := w.lineUp(t, r, processes...)
	holder.release(t)
	return attempts
}
