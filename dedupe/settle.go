package dedupe

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// settle ends the lease: it stops renewal, ends the handler's context so that nothing the handler
// started goes on believing that it holds the key, and tells the store. What follows the handler
// runs on a detached context: a client that hangs up must not cost the answer or leave the key
// held. When the store cannot be told, the client gets its answer all the same and the store is
// told in the background.
func (l *Lease) settle(verdict Verdict, answer []byte) {
	l.stop()
	l.cancel(context.Canceled)
	for _, cancel := range l.watchers {
		cancel(context.Canceled)
	}
	ctx := context.WithoutCancel(l.ctx)

	var failed []Holder
	for i := l.taken - 1; i >= 0; i-- {
		holder := Holder{l.keys[i].digest, l.token}
		if l.finish(ctx, holder, verdict, answer) != nil {
			failed = append(failed, holder)
		}
	}
	if failed == nil {
		l.settled()
		return
	}
	go func() {
		defer l.settled()
		for _, holder := range failed {
			retry(ctx, l.Deadline(), func(ctx context.Context) error {
				return l.finish(ctx, holder, verdict, answer)
			})
		}
	}()
}

// finish tells the store about one key. It returns an error only when trying again may help.
func (l *Lease) finish(ctx context.Context, h Holder, verdict Verdict, answer []byte) error {
	var err error
	switch verdict {
	case VerdictKeep:
		if answer == nil {
			answer = []byte{}
		}
		err = l.guard.store.Complete(ctx, h, answer, l.guard.retention)
	case VerdictTombstone:
		err = l.guard.store.Complete(ctx, h, nil, l.guard.retention)
	default:
		err = l.guard.store.Release(ctx, h)
	}
	if err == nil {
		return nil
	}
	l.emit(Event{Kind: EventSettleFailed, Err: err})
	if lost(err) || errors.Is(err, ErrRecordUnreadable) {
		return nil
	}
	return err
}

// settled takes the lease off the guard's list.
func (l *Lease) settled() {
	if l.taken > 0 {
		l.emit(Event{Kind: EventSettled, Held: time.Since(l.began)})
	}
	l.guard.holders.remove(l)
}

// evict ends the lease of a handler that did not return before its guard was closed. A Serialize
// gives the key back, now that the handler's context is cancelled. A Once leaves its claim to the
// crash policy: the handler may have done its work, and to release the claim would be to invite a
// second run.
func (l *Lease) evict() {
	l.lose(errors.Join(ErrLeaseLost, ErrClosed))
	l.stop()
	if l.guard.kind == kindOnce {
		return
	}
	l.mu.Lock()
	taken := l.taken
	l.mu.Unlock()
	for i := range taken {
		_ = l.finish(context.Background(), Holder{l.keys[i].digest, l.token}, VerdictRelease, nil)
	}
}

// abandoned counts the claims of which nobody knows whether they took effect and that are being
// taken back.
type abandoned struct{ running atomic.Int32 }

const (
	maxAbandoned = 64              // at a time; in an outage there would be one for each request
	abandonFor   = 2 * time.Second // an outage that is longer leaves the key to the end of its lease
)

// abandon takes back a claim that failed without a word from the store: it may have been carried
// out, and would then stand in everybody's way for a whole lease.
func (g *Guard) abandon(ctx context.Context, h Holder) {
	if g.abandoned.running.Add(1) > maxAbandoned {
		g.abandoned.running.Add(-1)
		return
	}
	go func() {
		defer g.abandoned.running.Add(-1)
		retry(context.WithoutCancel(ctx), time.Now().Add(abandonFor), func(ctx context.Context) error {
			err := g.store.Release(ctx, h)
			if errors.Is(err, ErrStoreUnavailable) {
				return err
			}
			return nil
		})
	}()
}

// retry repeats op at growing distances until it succeeds or deadline has passed.
func retry(ctx context.Context, deadline time.Time, op func(context.Context) error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for pause := 50 * time.Millisecond; op(ctx) != nil && sleep(ctx, pause); pause = min(2*pause, time.Second) {
	}
}

// sleep reports whether it slept for d before ctx was done.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
