package storetest

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// patience is how long something that must happen may take. It is reached by broken stores only.
const patience = 15 * time.Second

// Run tests the store that open returns. open is called once, and may register the store's end with
// t.Cleanup: it then comes after the last case.
func Run(t *testing.T, open func(t *testing.T) dedupe.Store, opts ...Option) {
	t.Helper()
	var s settings
	for _, opt := range opts {
		opt(&s)
	}
	store := open(t)
	for _, group := range suite {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(newTrial(t, store, s, patience))
				})
			}
		})
	}
}

// testCase is one thing that a store must do.
type testCase struct {
	name string
	run  func(t *trial)
}

// suite is every case there is.
var suite = []struct {
	name  string
	cases []testCase
}{
	{"Claim", claimCases},
	{"Fence", fenceCases},
	{"Lease", leaseCases},
	{"Stale", staleCases},
	{"Extend", extendCases},
	{"Complete", completeCases},
	{"Answer", answerCases},
	{"Release", releaseCases},
	{"Fingerprint", fingerprintCases},
	{"Lapse", lapseCases},
	{"Context", contextCases},
	{"Contention", contentionCases},
	{"Line", lineCases},
	{"Yield", yieldCases},
	{"Turn", turnCases},
	{"TTL", ttlCases},
	{"Unreadable", unreadableCases},
}
