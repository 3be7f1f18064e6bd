package storetest

import (
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// lineCases are about those that wait for a key: who gets it, when, and what they are told.
var lineCases = []testCase{
	{"FirstIsGrantedAtRelease", func(t *trial) {
		owner := t.newClaim(long)
		fence := t.grant(owner)
		w := t.queue()
		t.wantNoGrant(w)
		t.outlive(tick) // by then it may have been handed on as often as it can be
		t.release(owner)
		got := t.wantGrant(w).Fence
		if got < fence+dedupe.FencesPerGrant {
			t.Errorf("fence %d after fence %d, whose owner has %d of them", got, fence, dedupe.FencesPerGrant)
		}
		t.lost("Extend by the former owner", t.store.Extend(t.Context(), owner.Holder, long))
		t.wantHeld(w.Holder)
	}},
	{"FirstComeFirstServed", func(t *trial) {
		owner, line := t.holdWithLine(5)
		t.wantInTurn(owner, line...)
	}},
	{"AskingAgainKeepsThePlace", func(t *trial) {
		owner, line := t.holdWithLine(3)
		for range 2 {
			for _, w := range line[:2] {
				if !t.want(dedupe.StatusHeld, w.Claim).Queued {
					t.Fatalf("the second time it has no place")
				}
			}
		}
		t.wantInTurn(owner, line...)
	}},
	// A grant may be told late, or not at all: who asks again learns the same.
	{"GranteeThatAsksFindsItsFence", func(t *trial) {
		owner, line := t.holdWithLine(1)
		t.release(owner)
		told := t.wantGrant(line[0]).Fence
		if found := t.grant(line[0].Claim); found != told {
			t.Errorf("told the fence %d, and %d when it asked", told, found)
		}
	}},
	{"ReleaseTakesOutOfTheLine", func(t *trial) {
		owner, line := t.holdWithLine(3)
		t.release(line[0].Claim)
		t.release(line[2].Claim)
		t.wantHeld(owner.Holder)
		t.wantInTurn(owner, line[1])
		t.wantNoGrant(line[0])
		t.wantNoGrant(line[2])
	}},
	{"OneThatLeftComesBackAtTheEnd", func(t *trial) {
		owner, line := t.holdWithLine(2)
		t.release(line[0].Claim)
		t.join(line[0].Claim)
		t.wantInTurn(owner, line[1], line[0])
	}},
	{"UnwantedGrantGoesToTheNext", func(t *trial) {
		owner := t.newClaim(long)
		t.grant(owner)
		for range 3 {
			c := t.newClaim(long)
			c.Waiter = gone{}
			t.join(c)
		}
		w := t.queue()
		t.release(owner)
		t.wantGrant(w)
	}},
	{"GrantThatNobodyWantsFreesTheKey", func(t *trial) {
		owner, c := t.newClaim(long), t.newClaim(long)
		t.grant(owner)
		c.Waiter = gone{}
		t.join(c)
		t.release(owner)
		t.await(dedupe.StatusGranted, t.newClaim(long), dedupe.StatusHeld)
	}},
	{"ClaimWithoutAWaiterHasNoPlace", func(t *trial) {
		owner, line := t.holdWithLine(1)
		if t.want(dedupe.StatusHeld, t.newClaim(long)).Queued {
			t.Errorf("it is queued")
		}
		t.wantInTurn(owner, line...)
	}},
	{"NobodyGetsInBetween", func(t *trial) {
		owner, line := t.holdWithLine(3)
		var barged, over atomic.Bool
		together(5, func(i int) {
			if i == 0 {
				defer over.Store(true)
				for _, w := range line {
					if err := t.store.Release(t.Context(), owner.Holder); err != nil {
						t.Errorf("Release: %v", err)
					}
					select {
					case <-w.words:
					case <-time.After(t.patience):
						t.Errorf("not granted within %v", t.patience)
					}
					owner = w.Claim
				}
				return
			}
			for !over.Load() {
				found, err := t.store.Claim(t.Context(), t.newClaim(long))
				if err != nil || found.Status != dedupe.StatusHeld {
					barged.Store(true)
					return
				}
			}
		})
		if barged.Load() {
			t.Errorf("one that does not wait came between release and grant")
		}
	}},
	{"MismatchIsToldAndHasNoPlace", func(t *trial) {
		owner := t.with(fingerprint)
		t.grant(owner)
		same, other := t.newWaiter(long), t.newWaiter(long)
		same.Fingerprint, other.Fingerprint = fingerprint, otherFingerprint
		t.join(same.Claim)
		if t.want(dedupe.StatusMismatch, other.Claim).Queued {
			t.Errorf("it is queued")
		}
		t.release(owner)
		t.wantGrant(same)
		t.want(dedupe.StatusMismatch, other.Claim)
		t.release(same.Claim)
		t.wantNoGrant(other)
		t.wantFree()
	}},
	{"CompletionWakesAll", func(t *trial) {
		owner, line := t.holdWithLine(4)
		t.succeed("Complete", t.store.Complete(t.Context(), owner.Holder, []byte("answer"), long))
		for _, w := range line {
			g := t.wantWord(w, "the completion", func(dedupe.Grant) bool { return true })
			if granted(g) || g.Lease > tick {
				t.Fatalf("told the fence %d, and %v", g.Fence, g.Lease)
			}
			if answer := t.want(dedupe.StatusCompleted, w.Claim).Answer; string(answer) != "answer" {
				t.Fatalf("answer %q", answer)
			}
		}
		t.lost("Release", t.store.Release(t.Context(), line[0].Holder))
		t.wantAnswer([]byte("answer"))
	}},
	{"ExtendKeepsTheLine", func(t *trial) {
		owner, line := t.holdWithLine(2)
		t.succeed("Extend", t.store.Extend(t.Context(), owner.Holder, long))
		t.wantInTurn(owner, line...)
	}},
	{"RepeatedClaimKeepsTheLine", func(t *trial) {
		owner, line := t.holdWithLine(2)
		t.grant(owner)
		t.wantInTurn(owner, line...)
	}},
	{"ManyKeysHaveLinesOfTheirOwn", func(t *trial) {
		const keys = 50
		owners, lines := make([]dedupe.Claim, keys), make([][]*waiter, keys)
		for i := range keys {
			t.digest = t.newDigest()
			owners[i], lines[i] = t.holdWithLine(2)
		}
		for turn := range 2 {
			for i := range keys {
				t.release(owners[i])
				owners[i] = lines[i][turn].Claim
			}
			for i := range keys {
				t.wantGrant(lines[i][turn])
			}
		}
	}},
	{"OneAtATime", oneAtATime},
}

// oneAtATime has many take turns on one key through its line. Reading and writing in two steps loses
// what another owner writes in between.
func oneAtATime(t *trial) {
	t.holdAndRelease() // where there are no lines, the case is skipped here
	const workers, rounds = 16, 10
	var balance, owners atomic.Int64
	var last atomic.Uint64
	together(workers, func(int) {
		for range rounds {
			w := t.newWaiter(long)
			fence, ok := t.obtain(w)
			if !ok {
				return
			}
			if n := owners.Add(1); n != 1 {
				t.Errorf("%d owners at once", n)
			}
			if before := last.Swap(fence); fence <= before {
				t.Errorf("fence %d after fence %d", fence, before)
			}
			read := balance.Load()
			time.Sleep(tick / 4)
			balance.Store(read + 1)
			owners.Add(-1)
			if err := t.store.Release(t.Context(), w.Holder); err != nil {
				t.Errorf("Release: %v", err)
			}
		}
	})
	if total := balance.Load(); total != workers*rounds {
		t.Errorf("%d of %d updates were lost", workers*rounds-total, workers*rounds)
	}
}

// holdAndRelease sees that another key has a line.
func (t *trial) holdAndRelease() {
	t.Helper()
	digest := t.digest
	defer func() { t.digest = digest }()
	t.digest = t.newDigest()
	owner, line := t.holdWithLine(1)
	t.release(owner)
	t.wantGrant(line[0])
}

// obtain gets the key for w as a guard does: it claims, and again when it is told to or has heard
// nothing for as long as it was to wait.
func (t *trial) obtain(w *waiter) (fence uint64, ok bool) {
	deadline := time.Now().Add(t.patience)
	for time.Now().Before(deadline) {
		found, err := t.store.Claim(t.Context(), w.Claim)
		switch {
		case err != nil:
			t.Errorf("Claim: %v", err)
			return 0, false
		case found.Status == dedupe.StatusGranted:
			return found.Fence, true
		case found.Status != dedupe.StatusHeld:
			t.Errorf("Claim found %v", found.Status)
			return 0, false
		}
		after := tick
		if found.Queued {
			after = min(found.Remaining, time.Until(deadline))
		}
		select {
		case g := <-w.words:
			if granted(g) {
				return g.Fence, true
			}
		case <-time.After(after):
		}
	}
	t.Errorf("not granted within %v", t.patience)
	return 0, false
}
