package storetest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

const (
	// short is a lease that a case sees the end of.
	short = 60 * time.Millisecond
	// long is one that it does not.
	long = 2 * time.Minute
	// tick is the pause between two looks at something that is waited for.
	tick = time.Millisecond
	// crowd is how many contend where one must win.
	crowd = 32
)

// trial is one run of one case, with a key that nothing else uses. Its methods end the case when the
// store does not do what they say; only Errorf and the store itself may be used in other goroutines.
type trial struct {
	testing.TB
	settings

	store    dedupe.Store
	digest   dedupe.Digest
	patience time.Duration
}

func newTrial(t testing.TB, store dedupe.Store, s settings, patience time.Duration) *trial {
	tr := &trial{TB: t, settings: s, store: store, patience: patience}
	tr.digest = tr.newDigest()
	return tr
}

// newDigest makes another key for the trial.
func (t *trial) newDigest() dedupe.Digest {
	return sha256.Sum256([]byte(t.Name() + rand.Text()))
}

// holder makes another contender for the trial's key.
func (t *trial) holder() dedupe.Holder {
	return dedupe.Holder{Digest: t.digest, Token: newToken()}
}

func newToken() (token dedupe.Token) {
	_, _ = rand.Read(token[:])
	return token
}

// newClaim makes the claim of another contender for the trial's key.
func (t *trial) newClaim(lease time.Duration) dedupe.Claim {
	return dedupe.Claim{Holder: t.holder(), Lease: lease}
}

// claim sends c.
func (t *trial) claim(c dedupe.Claim) dedupe.Claimed {
	t.Helper()
	found, err := t.store.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	return found
}

// want sends c, which must find want.
func (t *trial) want(want dedupe.Status, c dedupe.Claim) dedupe.Claimed {
	t.Helper()
	found := t.claim(c)
	if found.Status != want {
		t.Fatalf("Claim found %v, want %v", found.Status, want)
	}
	return found
}

// grant sends c, which must be granted, and returns the fence.
func (t *trial) grant(c dedupe.Claim) uint64 {
	t.Helper()
	return t.want(dedupe.StatusGranted, c).Fence
}

// hold makes a new owner of the trial's key.
func (t *trial) hold(lease time.Duration) dedupe.Holder {
	t.Helper()
	c := t.newClaim(lease)
	t.grant(c)
	return c.Holder
}

// complete makes a completed record of the trial's key and returns its owner.
func (t *trial) complete(answer []byte, retention time.Duration) dedupe.Holder {
	t.Helper()
	h := t.hold(long)
	t.succeed("Complete", t.store.Complete(t.Context(), h, answer, retention))
	return h
}

// lapse makes a lapsed record of the trial's key, which stays, and returns its claim.
func (t *trial) lapse(f dedupe.Fingerprint) dedupe.Claim {
	t.Helper()
	c := t.newClaim(short)
	c.Lapse, c.Fingerprint = long, f
	t.grant(c)
	t.await(dedupe.StatusLapsed, t.newClaim(long), dedupe.StatusHeld)
	return c
}

func (t *trial) succeed(what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// lost is what must become of a call by someone who does not hold the key.
func (t *trial) lost(what string, err error) {
	t.Helper()
	if !errors.Is(err, dedupe.ErrLeaseLost) {
		t.Fatalf("%s: got %v, want ErrLeaseLost", what, err)
	}
	if errors.Is(err, dedupe.ErrStoreUnavailable) {
		t.Fatalf("%s: a lost lease is told as an outage: %v", what, err)
	}
}

// wantHeld fails unless h owns the trial's key, which it does for long after that.
func (t *trial) wantHeld(h dedupe.Holder) {
	t.Helper()
	t.want(dedupe.StatusHeld, t.newClaim(long))
	t.succeed("Extend by the owner", t.store.Extend(t.Context(), h, long))
}

// wantFree fails unless nobody owns the trial's key. It stays free.
func (t *trial) wantFree() {
	t.Helper()
	h := t.hold(long)
	t.succeed("Release", t.store.Release(t.Context(), h))
}

// wantAnswer fails unless the trial's key is completed with want: nil is a tombstone.
func (t *trial) wantAnswer(want []byte) {
	t.Helper()
	got := t.want(dedupe.StatusCompleted, t.newClaim(long)).Answer
	switch {
	case (got == nil) != (want == nil):
		t.Fatalf("answer: nil is %v, want %v", got == nil, want == nil)
	case !bytes.Equal(got, want):
		t.Fatalf("answer: %.80q (%d bytes), want %.80q (%d bytes)", got, len(got), want, len(want))
	}
}

// await repeats c until it finds want. Until then it may find before, and nothing else.
func (t *trial) await(want dedupe.Status, c dedupe.Claim, before ...dedupe.Status) dedupe.Claimed {
	t.Helper()
	deadline := time.Now().Add(t.patience)
	for {
		found := t.claim(c)
		if found.Status == want {
			return found
		}
		if !slices.Contains(before, found.Status) {
			t.Fatalf("Claim found %v while waiting for %v", found.Status, want)
		}
		if time.Now().After(deadline) {
			t.Fatalf("still %v, not %v after %v", found.Status, want, t.patience)
		}
		time.Sleep(tick)
	}
}

// outlive returns when everything that was to last for d, and began before the call, is over by the
// store's own clock: it watches another key for that long, and a little longer, because retentions
// are not kept to the microsecond.
func (t *trial) outlive(d time.Duration) {
	t.Helper()
	c := dedupe.Claim{Holder: dedupe.Holder{Digest: t.newDigest(), Token: newToken()}, Lease: d + 5*time.Millisecond}
	t.grant(c)
	c.Token, c.Lease = newToken(), long
	t.await(dedupe.StatusGranted, c, dedupe.StatusHeld)
}

// inTime grants a key and calls act, which must succeed before the lease is over. When the machine is
// too slow for that, nothing is learned, and a longer lease is tried on another key. It returns the
// lease.
func (t *trial) inTime(act func(c dedupe.Claim) error) time.Duration {
	t.Helper()
	for lease := short; lease < t.patience; lease *= 2 {
		t.digest = t.newDigest()
		c := t.newClaim(lease)
		start := time.Now()
		t.grant(c)
		err := act(c)
		if time.Since(start) < lease {
			t.succeed("within the lease", err)
			return lease
		}
	}
	t.Fatalf("no lease under %v was long enough for two calls", t.patience)
	return 0
}

// together calls act n times at once and returns when all calls have. act must not end the case.
func together(n int, act func(i int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			act(i)
		})
	}
	close(start)
	all.Wait()
}
