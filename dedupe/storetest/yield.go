package storetest

import (
	"github.com/interlock-go/interlock/dedupe"
)

// yieldCases are about claims that end the lease of an earlier owner and stand in line again.
var yieldCases = []testCase{
	{"WithNobodyInLineIsGranted", func(t *trial) {
		owner := t.newClaim(long)
		fence := t.grant(owner)
		t.queueAndLeave()
		w := t.newWaiter(long)
		w.Yields = owner.Token
		t.outlive(tick) // by then it may have been handed on as often as it can be
		if got := t.grant(w.Claim); got < fence+dedupe.FencesPerGrant {
			t.Errorf("fence %d after fence %d, whose owner has %d of them", got, fence, dedupe.FencesPerGrant)
		}
		t.lost("Extend by the former owner", t.store.Extend(t.Context(), owner.Holder, long))
		t.wantHeld(w.Holder)
		t.release(w.Claim)
		t.wantFree()
	}},
	{"WithOthersInLineGoesToItsEnd", func(t *trial) {
		owner, line := t.holdWithLine(2)
		w := t.yield(owner)
		t.wantGrant(line[0])
		t.lost("Extend by the former owner", t.store.Extend(t.Context(), owner.Holder, long))
		t.wantInTurn(line[0].Claim, line[1], w)
	}},
	// Clients send a command again when its reply was lost.
	{"TwiceHasOneResult", func(t *trial) {
		owner, line := t.holdWithLine(2)
		w := t.yield(owner)
		if !t.want(dedupe.StatusHeld, w.Claim).Queued {
			t.Fatalf("the second time it has no place")
		}
		t.wantGrant(line[0])
		t.wantNoGrant(line[1])
		t.wantInTurn(line[0].Claim, line[1], w)
	}},
	{"TwiceWithNobodyInLineHasOneFence", func(t *trial) {
		owner := t.newClaim(long)
		t.grant(owner)
		t.queueAndLeave()
		w := t.newWaiter(long)
		w.Yields = owner.Token
		if first, second := t.grant(w.Claim), t.grant(w.Claim); first != second {
			t.Errorf("fence %d, and %d when it was sent again", first, second)
		}
	}},
	{"OfOneThatIsNotTheOwnerChangesNothing", func(t *trial) {
		owner, line := t.holdWithLine(1)
		stranger := t.yield(t.newClaim(long))
		t.wantHeld(owner.Holder)
		t.wantInTurn(owner, line[0], stranger)
	}},
	{"WithoutAWaiterHasNoPlace", func(t *trial) {
		owner, line := t.holdWithLine(1)
		c := t.newClaim(long)
		c.Yields = owner.Token
		if t.want(dedupe.StatusHeld, c).Queued {
			t.Errorf("it is queued")
		}
		t.wantGrant(line[0])
		t.wantInTurn(line[0].Claim)
	}},
	{"WithoutAWaiterAndALineIsGranted", func(t *trial) {
		owner := t.newClaim(long)
		t.grant(owner)
		t.queueAndLeave()
		c := t.newClaim(long)
		c.Yields = owner.Token
		t.grant(c)
		t.lost("Extend by the former owner", t.store.Extend(t.Context(), owner.Holder, long))
		t.wantHeld(c.Holder)
	}},
	{"WithAnotherFingerprintYieldsNothing", func(t *trial) {
		owner := t.with(fingerprint)
		t.grant(owner)
		t.queueAndLeave()
		c := t.with(otherFingerprint)
		c.Yields = owner.Token
		t.want(dedupe.StatusMismatch, c)
		t.wantHeld(owner.Holder)
	}},
	// The fences of a busy key must not run ahead of what they start from when nothing is left of it.
	{"FencesRiseOverManyAndARelease", func(t *trial) {
		owner := t.newClaim(long)
		last := t.grant(owner)
		t.queueAndLeave()
		for range 500 {
			c := t.newClaim(long)
			c.Yields = owner.Token
			fence := t.grant(c)
			t.wantHigher(last, fence)
			owner, last = c, fence
		}
		t.release(owner)
		t.wantHigher(last, t.grant(t.newClaim(long)))
	}},
	{"DoesNotUndoACompletion", func(t *trial) {
		owner, _ := t.holdWithLine(1)
		t.succeed("Complete", t.store.Complete(t.Context(), owner.Holder, []byte("answer"), long))
		w := t.newWaiter(long)
		w.Yields = owner.Token
		t.want(dedupe.StatusCompleted, w.Claim)
		t.wantAnswer([]byte("answer"))
	}},
}

// yield sends a claim that ends owner's lease, and gets a place in the line.
func (t *trial) yield(owner dedupe.Claim) *waiter {
	t.Helper()
	w := t.newWaiter(long)
	w.Yields = owner.Token
	if !t.want(dedupe.StatusHeld, w.Claim).Queued {
		t.Fatalf("it has no place")
	}
	return w
}

// queueAndLeave sees that the trial's key, which is held, can have a line, and leaves it empty.
func (t *trial) queueAndLeave() {
	t.Helper()
	t.release(t.queue().Claim)
}
