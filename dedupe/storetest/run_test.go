package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

const (
	// hurry is the patience with faulty stores: some of them never do what is waited for.
	hurry = 400 * time.Millisecond
	// attempts is how often a fault may go unnoticed. Those that are a matter of timing may.
	attempts = 10
)

func TestAStoreWithoutFaultsPasses(t *testing.T) {
	store := newFaulty(none)
	Run(t,
		func(*testing.T) dedupe.Store { return store },
		WithTTLs(store.ttl),
		WithCorrupt(store.corrupt),
		WithLines(),
	)
}

func TestEveryCaseFindsItsFaults(t *testing.T) {
	known := map[string]bool{}
	var all sync.WaitGroup
	places := make(chan struct{}, 16)
	for _, group := range suite {
		for _, c := range group.cases {
			name := group.name + "/" + c.name
			if known[name] {
				t.Errorf("two cases are named %s", name)
			}
			known[name] = true
			if len(findings[name]) == 0 {
				t.Errorf("%s is there to find nothing", name)
			}
			for _, f := range findings[name] {
				places <- struct{}{}
				all.Go(func() {
					defer func() { <-places }()
					if !finds(t, c, f) {
						t.Errorf("%s does not find that %s", name, f)
					}
				})
			}
		}
	}
	all.Wait()
	for name := range findings {
		if !known[name] {
			t.Errorf("there is no case %s", name)
		}
	}
}

func finds(t *testing.T, c testCase, f fault) bool {
	for range attempts {
		store := newFaulty(f)
		if record(t, store, settings{ttl: store.ttl, corrupt: store.corrupt, lines: true}, c).failure != "" {
			return true
		}
	}
	return false
}

// A store without lines passes, unless it was said to have them.
func TestWithoutLinesTheirCasesAreSkipped(t *testing.T) {
	var all sync.WaitGroup
	for _, cases := range [][]testCase{lineCases, yieldCases, turnCases} {
		for _, c := range cases {
			all.Go(func() {
				store := newFaulty(nobodyIsQueued)
				if r := record(t, store, settings{ttl: store.ttl}, c); !r.skipped || r.failure != "" {
					t.Errorf("%s is not skipped: %s", c.name, r.failure)
				}
				store = newFaulty(nobodyIsQueued)
				if r := record(t, store, settings{ttl: store.ttl, lines: true}, c); r.skipped || r.failure == "" {
					t.Errorf("%s does not fail where there ought to be lines", c.name)
				}
			})
		}
	}
	all.Wait()
}

func TestWithoutAnOptionItsCasesAreSkipped(t *testing.T) {
	for _, cases := range [][]testCase{ttlCases, unreadableCases} {
		for _, c := range cases {
			if r := record(t, newFaulty(none), settings{}, c); !r.skipped || r.failure != "" {
				t.Errorf("%s is not skipped: %s", c.name, r.failure)
			}
		}
	}
}
