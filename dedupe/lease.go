package dedupe

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Lease is one guard's hold on the keys of one request, or of one [Guard.Run]. Its methods are
// safe for concurrent use, and stay valid after the handler has returned.
type Lease struct {
	guard     *Guard
	outer     *Lease // the lease around this one on the same request
	operation string

	arrived time.Time
	began   time.Time // before the claim was sent that got the first key, or when that was handed on
	holdEnd time.Time // began plus the maximum hold
	waited  time.Duration
	gaveUp  error // why it stopped asking before its time, or nil: the client is gone, the guard closed

	ctx     context.Context //nolint:containedctx // the handler's context: it lives as long as the lease
	cancel  context.CancelCauseFunc
	carrier leaseContext // what ctx points to

	// keys are those that this lease takes, in the order in which it takes them. Their fences are
	// written before the handler starts and not changed while it runs.
	keys  []claimant
	space [1]claimant
	first Digest // of the guard's first key, which a lease further out may have

	mu       sync.Mutex
	taken    int       // how many of keys are ours
	deadline time.Time // local and monotonic: until then the store grants the keys to nobody else
	lost     error     // why the lease was lost, or nil
	ended    bool      // the handler has returned
	wish     wish
	watchers []context.CancelCauseFunc
	renewal  renewal

	previous, next *Lease // in guard.holders
}

type leaseKey struct{}

// leaseContext carries the lease to the handler.
type leaseContext struct {
	context.Context //nolint:containedctx // it is a context

	lease *Lease
}

func (c *leaseContext) Value(key any) any {
	if key == (leaseKey{}) {
		return c.lease
	}
	return c.Context.Value(key)
}

func leaseOf(ctx context.Context) *Lease {
	lease, _ := ctx.Value(leaseKey{}).(*Lease)
	return lease
}

// LeaseFrom returns the innermost lease that a guard put into a handler's context, and whether
// there is one.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	lease := leaseOf(ctx)
	return lease, lease != nil
}

// Lease returns the lease that covers g's keys in a handler's context, and whether there is one. It
// picks the right one where several guards are composed.
func (g *Guard) Lease(ctx context.Context) (*Lease, bool) {
	for lease := leaseOf(ctx); lease != nil; lease = lease.outer {
		if lease.guard == g {
			return lease, true
		}
	}
	if g.kind == kindOnce { // all of them have one name, and each request its own key
		return nil, false
	}
	// A Serialize that found its keys held further out on the same request has no lease of its own.
	for lease := leaseOf(ctx); lease != nil; lease = lease.outer {
		if lease.guard.sameDomain(g) {
			return lease, true
		}
	}
	return nil, false
}

// Fence returns the fence of the guard's first key. Every later holder of the key has a higher
// one, so a database that keeps the highest it has seen can refuse a holder that stalled past its
// lease: UPDATE … SET fence = $1 … WHERE fence <= $1.
func (l *Lease) Fence() uint64 {
	fence, _ := l.find(func(c *claimant) bool { return c.digest == l.first })
	return fence
}

// FenceOf returns the fence of key, one of several that [WithAlso] makes a guard take, and whether
// it is held. Fences of different keys cannot be compared.
func (l *Lease) FenceOf(key string) (uint64, bool) {
	return l.find(func(c *claimant) bool { return c.key == key })
}

// find returns the fence of a key that this lease, or one of the same domain around it, holds.
func (l *Lease) find(wanted func(*claimant) bool) (uint64, bool) {
	for lease := l; lease != nil; lease = lease.outer {
		if !lease.guard.sameDomain(l.guard) {
			continue
		}
		for i := range lease.taken { // the others' fences may be written just now
			if c := &lease.keys[i]; wanted(c) {
				return c.fence, true
			}
		}
	}
	return 0, false
}

// Deadline returns until when the lease is certainly valid, by this process's monotonic clock. It
// moves with every renewal. It is counted from before the last successful request to the store was
// sent, and ends early by a twentieth of [WithLease], so that the handler is told before the store can
// grant the key to another.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// Check asks the store whether the lease is still held, and renews it if so. It returns nil when
// it is, an error that matches [ErrLeaseLost] when it is not, and one that matches
// [ErrStoreUnavailable] when the store cannot be asked: then the lease is still valid until
// [Lease.Deadline].
func (l *Lease) Check(ctx context.Context) error {
	if err := l.over(); err != nil {
		return err
	}
	return l.extend(ctx)
}

// over returns why the lease is no longer held, or nil while it is.
func (l *Lease) over() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lost != nil:
		return l.lost
	case l.ended, !time.Now().Before(l.deadline):
		return ErrLeaseLost
	default:
		return nil
	}
}

// holds reports whether the lease covers a record of store, for a guard further in on the same
// request.
func (l *Lease) holds(store Store, digest Digest) bool {
	if l.guard.store != store || l.over() != nil {
		return false
	}
	for i := range l.keys { // in place: the rest of a claimant is its gate's
		if l.keys[i].digest == digest {
			return true
		}
	}
	return false
}

// add puts a key on the list of those to take, unless it is there or a lease further out has it.
func (l *Lease) add(digest Digest, key string) {
	if l.first == (Digest{}) {
		l.first = digest
	}
	for outer := l.outer; outer != nil; outer = outer.outer {
		if outer.holds(l.guard.store, digest) {
			return
		}
	}
	if l.keys == nil {
		l.keys = l.space[:0]
	}
	at, found := slices.BinarySearchFunc(l.keys, digest, func(c claimant, d Digest) int {
		return bytes.Compare(c.digest[:], d[:])
	})
	if !found {
		l.keys = slices.Insert(l.keys, at, claimant{digest: digest, key: key})
	}
}

// begin gives the lease the handler's context.
func (l *Lease) begin(ctx context.Context) {
	if l.guard.observe != nil { // only observers want to know
		l.arrived = time.Now()
	}
	inner, cancel := context.WithCancelCause(ctx)
	l.carrier = leaseContext{inner, l}
	l.ctx, l.cancel = &l.carrier, cancel
}

// acquire takes the keys one after the other, all or none. Only with StatusGranted and no error is
// the lease held; otherwise it is settled.
func (l *Lease) acquire(fingerprint Fingerprint) (Claimed, error) {
	g := l.guard
	claim := Claim{Fingerprint: fingerprint, Lease: g.lease}
	if g.crash != CrashTakeOver {
		claim.Lapse = g.retention
	}
	patience := patience{wait: g.wait}
	for i := range l.keys {
		c := &l.keys[i]
		claim.Digest = c.digest
		found, err := l.obtain(c, claim, &patience)
		if err == nil && found.Status == StatusGranted {
			l.take(c)
			if !patience.waited() || l.ctx.Err() == nil {
				continue
			}
			found = Claimed{Status: StatusHeld} // the client left while it waited
		}
		l.gaveUp = context.Cause(l.ctx)
		l.settle(VerdictRelease, nil)
		return found, err
	}
	// With several keys, an early one may have been lost while the last was waited for.
	if err := l.over(); err != nil {
		l.gaveUp = context.Cause(l.ctx)
		l.settle(VerdictRelease, nil)
		return Claimed{}, errors.Join(ErrStoreUnavailable, err)
	}
	return Claimed{Status: StatusGranted}, nil
}

// take notes that one more key is held.
func (l *Lease) take(c *claimant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken++
	switch {
	case l.taken == 1:
		l.began = c.began
		l.holdEnd = l.began.Add(l.guard.maxHold)
		l.deadline = c.deadline
		l.renewal.start(l)
	case c.deadline.Before(l.deadline):
		l.deadline = c.deadline
		l.renewal.hasten(l)
	}
}

// deadlineOf is when a lease asked for at sent is to be taken for over: a twentieth of the guard's
// lease early, because timers fire late and clocks do not run alike. The last lease before the maximum
// hold is shorter than the others, and machines are not quicker then.
func (g *Guard) deadlineOf(sent time.Time, lease time.Duration) time.Time {
	return sent.Add(lease - g.margin())
}

func (g *Guard) margin() time.Duration { return g.lease / 20 }

// enough is how much must be left of a lease that is handed on.
func (g *Guard) enough() time.Duration { return min(g.lease/3, 500*time.Millisecond) }

// lose ends the lease under a running handler.
func (l *Lease) lose(cause error) {
	l.mu.Lock()
	if l.lost != nil || l.ended {
		l.mu.Unlock()
		return
	}
	l.lost = cause
	began, watchers := l.began, l.watchers
	taken := l.keys[:l.taken]
	l.mu.Unlock()
	for i := range taken {
		taken[i].depart(Claimed{}) // whoever is next asks the store
	}
	l.cancel(cause)
	for _, cancel := range watchers {
		cancel(cause)
	}
	l.emit(Event{Kind: EventLeaseLost, Held: time.Since(began), Err: cause})
}

// hold runs what is inside the guard and settles once, whether it returns, panics or calls Goexit.
func (l *Lease) hold(inner []*Guard, call Call) (err error) {
	verdict, answer := VerdictRelease, []byte(nil)
	defer func() { l.settle(verdict, answer) }()
	l.emit(Event{Kind: EventDecided, Outcome: Proceed})
	if l.guard.kind == kindSerialize {
		return Do(l.ctx, inner, call)
	}
	call.Record()
	if err = Do(l.ctx, inner, call); err == nil {
		answer, verdict = l.answer(call)
	}
	return err
}

func (l *Lease) emit(event Event) {
	if l.guard.observe == nil {
		return
	}
	event.Guard, event.Operation = l.guard.name, l.operation
	l.mu.Lock()
	event.Waited, event.Fence = l.waited, l.Fence()
	l.mu.Unlock()
	l.guard.observe(event)
}
