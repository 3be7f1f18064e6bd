package storetest

import (
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// waiter is a claim that waits in the line of its key, and what it is told there.
type waiter struct {
	dedupe.Claim

	trial *trial
	words chan dedupe.Grant
}

// Wake implements [dedupe.Waiter].
func (w *waiter) Wake(h dedupe.Holder, g dedupe.Grant) bool {
	if h != w.Holder {
		w.trial.Errorf("a waiter is told about another")
	}
	w.words <- g
	return true
}

// gone is a [dedupe.Waiter] that does not want the key any more.
type gone struct{}

func (gone) Wake(dedupe.Holder, dedupe.Grant) bool { return false }

// newWaiter makes another contender for the trial's key that would wait for it.
func (t *trial) newWaiter(lease time.Duration) *waiter {
	w := &waiter{Claim: t.newClaim(lease), trial: t, words: make(chan dedupe.Grant, 1000)}
	w.Waiter = w
	return w
}

// queue makes another contender that has the last place in the line of the trial's key.
func (t *trial) queue() *waiter {
	t.Helper()
	w := t.newWaiter(long)
	t.join(w.Claim)
	return w
}

// join sends c until it has a place in the line. Stores may need a few claims until they can tell it
// anything. Where none ever gets a place, the case is skipped.
func (t *trial) join(c dedupe.Claim) {
	t.Helper()
	for deadline := time.Now().Add(t.patience); time.Now().Before(deadline); time.Sleep(tick) {
		if t.want(dedupe.StatusHeld, c).Queued {
			return
		}
	}
	if t.lines {
		t.Fatalf("no claim got a place in a line within %v", t.patience)
	}
	t.Skip("the store keeps no lines")
}

// holdWithLine makes an owner of the trial's key, and so many that wait for it.
func (t *trial) holdWithLine(n int) (dedupe.Claim, []*waiter) {
	t.Helper()
	owner := t.newClaim(long)
	t.grant(owner)
	line := make([]*waiter, n)
	for i := range line {
		line[i] = t.queue()
	}
	return owner, line
}

func (t *trial) release(c dedupe.Claim) {
	t.Helper()
	t.succeed("Release", t.store.Release(t.Context(), c.Holder))
}

// wantWord waits until w is told something for which wanted is true.
func (t *trial) wantWord(w *waiter, what string, wanted func(dedupe.Grant) bool) dedupe.Grant {
	t.Helper()
	timeout := time.NewTimer(t.patience)
	defer timeout.Stop()
	for {
		select {
		case g := <-w.words:
			if wanted(g) {
				return g
			}
		case <-timeout.C:
			t.Fatalf("%s was not told within %v", what, t.patience)
		}
	}
}

// wantGrant waits until w is told that it owns the key, and lets it confirm that.
func (t *trial) wantGrant(w *waiter) dedupe.Grant {
	t.Helper()
	before := time.Now()
	g := t.wantWord(w, "a grant", granted)
	switch {
	case g.Lease <= 0:
		t.Fatalf("granted for %v", g.Lease)
	case g.Since.After(time.Now()):
		t.Fatalf("granted %v from now", g.Since.Sub(before))
	}
	t.succeed("Extend by the grantee", t.store.Extend(t.Context(), w.Holder, long))
	return g
}

// wantInTurn fails unless those that wait get the key one after the other, each by the release of the
// one before it, and the key is free afterwards.
func (t *trial) wantInTurn(owner dedupe.Claim, line ...*waiter) {
	t.Helper()
	for i, w := range line {
		t.release(owner)
		t.wantGrant(w)
		for _, behind := range line[i+1:] {
			t.wantNoGrant(behind)
		}
		owner = w.Claim
	}
	t.release(owner)
	t.wantFree()
}

// wantNoGrant fails if w was told that it owns the key.
func (t *trial) wantNoGrant(w *waiter) {
	t.Helper()
	for {
		select {
		case g := <-w.words:
			if granted(g) {
				t.Fatalf("granted out of turn, with the fence %d", g.Fence)
			}
		default:
			return
		}
	}
}

func granted(g dedupe.Grant) bool { return g.Fence != 0 }
