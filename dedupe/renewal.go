package dedupe

import (
	"context"
	"errors"
	"sync"
	"time"
)

// renewal keeps a lease alive while its handler runs. Most handlers are done before it first
// fires, so until then it is a single timer. All fields are guarded by the lease's mutex, except
// running.
type renewal struct {
	timer   *time.Timer        // fires the next renewal
	expiry  *time.Timer        // fires at the deadline; set by the first renewal
	abort   context.CancelFunc // ends the renewal that is running, if any
	capped  bool               // the last renewal reached the maximum hold
	running sync.WaitGroup     // a renewal, from its start to its end
}

// start arms the first renewal. The lease is locked.
func (r *renewal) start(l *Lease) {
	r.timer = time.AfterFunc(l.renewIn(l.deadline.Sub(l.began)), l.renew)
}

// hasten arms the next renewal, and the expiry, for a deadline that is earlier than the one before.
// The lease is locked.
func (r *renewal) hasten(l *Lease) {
	if r.expiry != nil {
		r.expiry.Reset(time.Until(l.deadline))
	}
	r.timer.Reset(l.renewIn(time.Until(l.deadline)))
}

// renewIn is when to renew what is valid for so long: after a third of what the store granted, of which
// the margin is a twentieth.
func (l *Lease) renewIn(valid time.Duration) time.Duration {
	return max(0, min(valid*20/19, l.guard.lease)/3)
}

// renew is one renewal: it extends the lease, then arms the next one.
func (l *Lease) renew() {
	l.mu.Lock()
	if l.ended || l.lost != nil {
		l.mu.Unlock()
		return
	}
	if l.renewal.expiry == nil {
		l.renewal.expiry = time.AfterFunc(time.Until(l.deadline), l.expire)
	}
	ctx, abort := context.WithDeadline(context.WithoutCancel(l.ctx), l.deadline)
	l.renewal.abort = abort
	l.renewal.running.Add(1)
	l.mu.Unlock()
	defer l.renewal.running.Done()
	defer abort()

	pause := l.guard.lease / 3
	if err := l.extend(ctx); err != nil && ctx.Err() == nil {
		if lost(err) {
			return
		}
		l.emit(Event{Kind: EventRenewFailed, Err: err})
		pause = l.guard.lease / 12
		if rest := time.Until(l.Deadline()); rest < 2*pause { // a grant in the line is short
			pause = max(rest/4, pause/10)
		}
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended && l.lost == nil {
		l.renewal.timer.Reset(pause)
	}
}

// expire ends the lease when its deadline has passed without a renewal. It does not depend on the
// store returning.
func (l *Lease) expire() {
	l.mu.Lock()
	rest := time.Until(l.deadline)
	if rest > 0 {
		if !l.ended && l.lost == nil {
			l.renewal.expiry.Reset(rest)
		}
		l.mu.Unlock()
		return
	}
	cause := ErrLeaseLost
	if l.renewal.capped {
		cause = errors.Join(ErrLeaseLost, ErrHoldTooLong)
	}
	l.mu.Unlock()
	l.lose(cause)
}

// extend renews every key that is held, never beyond the maximum hold.
func (l *Lease) extend(ctx context.Context) error {
	l.mu.Lock()
	taken := l.taken
	l.mu.Unlock()

	sent := time.Now()
	lease := min(l.guard.lease, l.holdEnd.Sub(sent))
	if lease <= l.guard.margin() { // nothing to gain; the deadline will end the lease
		return nil
	}
	for i := range taken {
		err := l.guard.store.Extend(ctx, Holder{l.keys[i].digest, l.keys[i].token}, lease)
		if lost(err) {
			l.lose(ErrLeaseLost)
			return l.over()
		}
		if err != nil {
			return err
		}
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	if l.taken > taken { // the next one covers the key that came meanwhile
		return nil
	}
	l.deadline = l.guard.deadlineOf(sent, lease)
	l.renewal.capped = lease < l.guard.lease
	return nil
}

// stop ends renewal for good and waits for one that is running, so that none outlives the lease.
func (l *Lease) stop() {
	l.mu.Lock()
	l.ended = true
	if l.renewal.timer != nil {
		l.renewal.timer.Stop()
	}
	if l.renewal.expiry != nil {
		l.renewal.expiry.Stop()
	}
	if l.renewal.abort != nil {
		l.renewal.abort()
	}
	l.mu.Unlock()
	l.renewal.running.Wait()
}
