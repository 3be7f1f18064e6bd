package adaptertest

import (
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var crashScenarios = []scenario{
	{"TakenOver", func(t *trial) {
		t.crash(dedupe.CrashTakeOver)
		t.wantAnswer(2, false, t.until(t.request("k"), dedupe.InFlight))
		t.wantRuns(2)
	}},
	{"Reported", func(t *trial) {
		t.crash(dedupe.CrashReport)
		t.wantRefusal(dedupe.Uncertain, t.until(t.request("k"), dedupe.InFlight))
		t.refuse(dedupe.Uncertain, t.request("k"))
		t.refuse(dedupe.KeyReused, t.otherText("k"))
		t.wantRuns(1)
	}},
	{"Held", func(t *trial) {
		t.crash(dedupe.CrashHold)
		t.await("the end of the lease", func() bool {
			return t.refuse(dedupe.InFlight, t.request("k")).RetryAfter > time.Minute // the rest of the retention
		})
		t.wantRuns(1)
	}},
}

// crash serves a request whose process never tells the store how it ended. In the store its lease is
// brief. The process itself does not come to see the end of it, however slow the machine is.
func (t *trial) crash(policy dedupe.CrashPolicy) {
	t.Helper()
	var claimed, crashed atomic.Bool
	t.store = &store{
		Store: t.store,
		claim: func(c dedupe.Claim, next func(dedupe.Claim) (dedupe.Claimed, error)) (dedupe.Claimed, error) {
			if !claimed.Swap(true) {
				c.Lease = brief
			}
			return next(c)
		},
		complete: func(next func() error) error {
			if crashed.Swap(true) {
				return next()
			}
			return nil
		},
	}
	t.serve(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithCrashPolicy(policy))}})
	t.proceed(1, t.request("k"))
}
