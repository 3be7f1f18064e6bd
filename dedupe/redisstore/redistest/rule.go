package redistest

import (
	"context"
	"sync"
)

// Rule is a fault that has been arranged with [Proxy.On].
type Rule struct {
	match Match
	nth   int
	fault Fault

	// seen is the number of requests that matched, and is the proxy's to guard.
	seen int

	mu       sync.Mutex
	fired    int
	first    chan struct{} // closed when the fault has occurred
	released chan struct{} // closed when nothing is to be held any more
}

func newRule(match Match, nth int, fault Fault) *Rule {
	return &Rule{
		match:    match,
		nth:      nth,
		fault:    fault,
		first:    make(chan struct{}),
		released: make(chan struct{}),
	}
}

// due reports whether the rule applies to a request, and counts it.
func (r *Rule) due(args []string) bool {
	if !r.match(args) {
		return false
	}
	r.seen++

	return r.nth == 0 || r.nth == r.seen
}

// effect returns what the rule does, nothing in the case of no rule.
func (r *Rule) effect() effect {
	if r == nil {
		return none
	}

	return r.fault.effect
}

// fire notes that the fault has occurred.
func (r *Rule) fire() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.fired++
	if r.fired == 1 {
		close(r.first)
	}
}

// Fired returns how often the fault has occurred. It counts once the server has
// done its part, if it has one, and before the client can notice anything; where
// something is held back, at the beginning of that.
func (r *Rule) Fired() int {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.fired
}

// Wait returns nil when the fault has occurred, at least once, or the error of
// ctx if that ends first.
func (r *Rule) Wait(ctx context.Context) error {
	select {
	case <-r.first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release lets go of what the rule holds back, whether until now or for a time,
// and keeps it from holding anything back later on. It may be called more than once.
func (r *Rule) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()

	select {
	case <-r.released:
	default:
		close(r.released)
	}
}
