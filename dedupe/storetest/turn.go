package storetest

import (
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// turnCases are about leases that end while others wait, and what is kept of a line.
var turnCases = []testCase{
	{"FirstInLineTakesOverFromADeadOwner", func(t *trial) {
		line := t.queueBehindADeadOwner(0, long)
		for deadline := time.Now().Add(t.patience); time.Now().Before(deadline); time.Sleep(tick) {
			t.want(dedupe.StatusHeld, line[1].Claim) // it must not jump the line
			if t.claim(line[0].Claim).Status == dedupe.StatusGranted {
				t.wantInTurn(line[0].Claim, line[1])
				return
			}
		}
		t.Fatalf("not granted within %v", t.patience)
	}},
	{"AskingBehindADeadOwnerHelpsTheFirst", func(t *trial) {
		line := t.queueBehindADeadOwner(0, long)
		for deadline := time.Now().Add(t.patience); time.Now().Before(deadline); time.Sleep(tick) {
			t.want(dedupe.StatusHeld, line[1].Claim)
			select {
			case g := <-line[0].words:
				if granted(g) {
					t.wantInTurn(line[0].Claim, line[1])
					return
				}
			default:
			}
		}
		t.Fatalf("not granted within %v", t.patience)
	}},
	{"GranteeThatIsDeadLosesTheKeyToTheNext", func(t *trial) {
		owner := t.newClaim(long)
		t.grant(owner)
		dead, next := t.newWaiter(short), t.newWaiter(long)
		t.join(dead.Claim)
		t.join(next.Claim)
		t.release(owner)
		g := t.wantWord(dead, "a grant", granted)
		t.outlive(g.Lease)
		t.await(dedupe.StatusGranted, next.Claim, dedupe.StatusHeld)
		t.lost("Extend by the dead one", t.store.Extend(t.Context(), dead.Holder, long))
		t.wantHeld(next.Holder)
	}},
	{"GranteeThatExtendsKeepsTheKey", func(t *trial) {
		owner := t.newClaim(long)
		t.grant(owner)
		// A store that grants for the claim's own lease may not have told of it before that is over.
		w, next := t.newWaiter(10*short), t.newWaiter(long)
		t.join(w.Claim)
		t.join(next.Claim)
		t.release(owner)
		g := t.wantGrant(w)
		t.outlive(g.Lease)
		t.want(dedupe.StatusHeld, next.Claim)
		t.wantInTurn(w.Claim, next)
	}},
	{"LapsedRecordIsToldToThoseInLine", func(t *trial) {
		line := t.queueBehindADeadOwner(long, long)
		for _, w := range line {
			t.await(dedupe.StatusLapsed, w.Claim, dedupe.StatusHeld)
			t.wantNoGrant(w)
		}
		t.want(dedupe.StatusLapsed, t.newClaim(long))
	}},
	{"GranteesLeaseLapses", func(t *trial) {
		owner, w := t.newClaim(long), t.newWaiter(short)
		owner.Lapse, w.Lapse = long, long
		t.grant(owner)
		t.join(w.Claim)
		t.release(owner)
		g := t.wantWord(w, "a grant", granted)
		t.outlive(g.Lease)
		t.await(dedupe.StatusLapsed, t.newClaim(long), dedupe.StatusHeld)
		t.lost("Extend", t.store.Extend(t.Context(), w.Holder, long))
	}},
	{"FingerprintStaysWithTheGrantee", func(t *trial) {
		owner, w := t.with(fingerprint), t.newWaiter(long)
		w.Fingerprint = fingerprint
		t.grant(owner)
		t.join(w.Claim)
		t.release(owner)
		t.wantGrant(w)
		t.want(dedupe.StatusMismatch, t.with(otherFingerprint))
		t.succeed("Complete", t.store.Complete(t.Context(), w.Holder, []byte("answer"), long))
		t.want(dedupe.StatusMismatch, t.with(otherFingerprint))
		t.want(dedupe.StatusCompleted, t.with(fingerprint))
	}},
	{"EveryRecordHasATTL", func(t *trial) {
		t.needTTL()
		owner, line := t.holdWithLine(2)
		t.wantTTLOfALine(long)
		t.succeed("Extend", t.store.Extend(t.Context(), owner.Holder, 2*long))
		t.wantTTLOfALine(2 * long)
		t.release(owner)
		t.wantGrant(line[0])
		t.wantTTLOfALine(long)
		w := t.yield(line[0].Claim)
		t.wantGrant(line[1])
		t.wantTTLOfALine(long)
		t.release(line[1].Claim)
		t.wantGrant(w)
		t.release(w.Claim)
		t.wantNothing()
	}},
	{"LineThatWasLeftLeavesNothing", func(t *trial) {
		t.needTTL()
		owner, line := t.holdWithLine(2)
		for _, w := range line {
			t.release(w.Claim)
		}
		t.release(owner)
		t.wantNothing()
	}},
	{"LineOfTheDeadLeavesNothing", func(t *trial) {
		t.needTTL()
		t.queueBehindADeadOwner(0, short)
		t.awaitNothing()
	}},
	{"CompletedRecordHasNoLine", func(t *trial) {
		t.needTTL()
		owner, line := t.holdWithLine(2)
		t.succeed("Complete", t.store.Complete(t.Context(), owner.Holder, []byte("answer"), short))
		t.awaitNothing()
		for _, w := range line {
			t.wantNoGrant(w)
		}
	}},
}

// queueBehindADeadOwner makes two wait, with such a lease, for a key whose owner is not heard of any
// more. All of them claim with lapse. When the machine is too slow for them to queue before the owner's
// lease is over, a longer one is tried on another key.
func (t *trial) queueBehindADeadOwner(lapse, lease time.Duration) []*waiter {
	t.Helper()
	t.holdAndRelease() // so that the store listens
	for brief := short; brief < t.patience; brief *= 2 {
		t.digest = t.newDigest()
		dead, first, second := t.newClaim(brief), t.newWaiter(lease), t.newWaiter(lease)
		dead.Lapse, first.Lapse, second.Lapse = lapse, lapse, lapse
		start := time.Now()
		t.grant(dead)
		if t.claimInTime(first.Claim) && t.claimInTime(second.Claim) && time.Since(start) < brief {
			return []*waiter{first, second}
		}
	}
	t.Fatalf("no lease under %v was long enough for two to queue", t.patience)
	return nil
}

// claimInTime reports whether c gets a place in the line of the trial's key while that is held.
func (t *trial) claimInTime(c dedupe.Claim) bool {
	t.Helper()
	for range 20 {
		found := t.claim(c)
		if found.Queued || found.Status != dedupe.StatusHeld {
			return found.Queued
		}
		time.Sleep(tick)
	}
	return false
}

// wantTTLOfALine fails unless the trial's key goes some time after its lease: a store may keep it a
// little longer, to pass it on.
func (t *trial) wantTTLOfALine(lease time.Duration) {
	t.Helper()
	left, exists, err := t.ttl(t.Context(), t.digest)
	t.succeed("reading the TTL", err)
	switch {
	case !exists:
		t.Fatalf("nothing is kept while some wait")
	case left <= 0:
		t.Fatalf("kept for ever, want a TTL of %v", lease)
	case left > lease+time.Minute || left < lease-t.patience:
		t.Fatalf("the TTL is %v, want %v and a little", left, lease)
	}
}
