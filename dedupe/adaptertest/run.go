package adaptertest

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

const (
	// patience is how long something that must happen may take. It is reached by broken adapters
	// only.
	patience = 30 * time.Second
	// tick is the pause between two looks at something that is waited for.
	tick = 5 * time.Millisecond
	// brief is a lease that a scenario sees the end of, long beside a call to the store.
	brief = 300 * time.Millisecond
	// crowd is how many come at once where one may run.
	crowd = 100
)

// Run tests an adapter through every scenario on every store. Each scenario opens a store, or gets one
// that others use at the same time.
func Run(t *testing.T, adapter Adapter, stores map[string]func(testing.TB) dedupe.Store) {
	t.Helper()
	if kept := func(f Failure) bool { return f.Kept }; !slices.ContainsFunc(adapter.Failures, kept) ||
		!slices.ContainsFunc(adapter.Failures, func(f Failure) bool { return !f.Kept }) {
		t.Fatal("of the adapter's Failures, some must be kept and some not")
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			for _, group := range suite {
				t.Run(group.name, func(t *testing.T) {
					t.Parallel()
					for _, s := range group.scenarios {
						t.Run(s.name, func(t *testing.T) {
							t.Parallel()
							s.run(newTrial(t, adapter, store))
						})
					}
				})
			}
		})
	}
}

// scenario is one thing that happens to requests.
type scenario struct {
	name string
	run  func(t *trial)
}

// suite is every scenario there is.
var suite = []struct {
	name      string
	scenarios []scenario
}{
	{"Replay", replayScenarios},
	{"Conflict", conflictScenarios},
	{"Mismatch", mismatchScenarios},
	{"Key", keyScenarios},
	{"Isolation", isolationScenarios},
	{"Exemption", exemptionScenarios},
	{"Limit", limitScenarios},
	{"Failure", failureScenarios},
	{"Panic", panicScenarios},
	{"Departure", departureScenarios},
	{"Deadline", deadlineScenarios},
	{"Crowd", crowdScenarios},
	{"Wait", waitScenarios},
	{"Composition", compositionScenarios},
	{"Resources", resourceScenarios},
	{"Lease", leaseScenarios},
	{"Crash", crashScenarios},
	{"Outage", outageScenarios},
	{"Close", closeScenarios},
}
