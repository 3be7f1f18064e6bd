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

	answer, verdict = l.encode(answer, verdict)
	var failed []*claimant
	var cause error // why the store was not told, by the last that it was not told
	for i := l.taken - 1; i >= 0; i-- {
		c := &l.keys[i]
		if verdict != VerdictRelease {
			c.conclude()
		} else if c.handOn(l) {
			continue
		}
		switch err := l.finish(ctx, c, verdict, answer); {
		case !again(err):
			cause = errors.Join(cause, err)
			c.depart(shared(verdict, answer, err))
		case verdict == VerdictRelease:
			failed = append(failed, c)
			c.depart(Claimed{})
		default:
			failed = append(failed, c)
			c.keep()
		}
	}
	if failed == nil {
		l.settled(cause)
		return
	}
	go func() {
		for _, c := range failed {
			err := retry(ctx, l.Deadline(), func(ctx context.Context) error {
				return l.finish(ctx, c, verdict, answer)
			})
			cause = errors.Join(cause, err)
			c.depart(shared(verdict, answer, err))
		}
		l.settled(cause)
	}()
}

// shared is what those who wait in this process find once the store knows of the answer.
func shared(verdict Verdict, answer []byte, err error) Claimed {
	if err != nil || verdict == VerdictRelease {
		return Claimed{}
	}
	return Claimed{Status: StatusCompleted, Answer: answer}
}

// finish tells the store about one key.
func (l *Lease) finish(ctx context.Context, c *claimant, verdict Verdict, answer []byte) error {
	var err error
	holder := Holder{c.digest, c.token}
	switch verdict {
	case VerdictKeep:
		err = l.guard.store.Complete(ctx, holder, answer, l.retention())
	case VerdictTombstone:
		err = l.guard.store.Complete(ctx, holder, nil, l.retention())
	default:
		err = l.guard.store.Release(ctx, holder)
	}
	if again(err) {
		l.emit(Event{Kind: EventSettleFailed, Err: err})
	}
	return err
}

// settled takes the lease off the guard's list.
func (l *Lease) settled(err error) {
	if l.taken > 0 {
		l.emit(Event{Kind: EventSettled, Held: time.Since(l.began), Err: err})
	}
	l.guard.holders.remove(l)
}

// giveBack releases the keys of a handler that did not return before its guard was closed, now that
// its context is cancelled. A Once leaves its claim to the crash policy: the handler may have done
// its work, and to release the claim would be to invite a second run.
func (l *Lease) giveBack(ctx context.Context) {
	l.stop()
	if l.guard.kind == kindOnce {
		return
	}
	l.mu.Lock()
	taken := l.taken
	l.mu.Unlock()
	for i := range taken {
		if c := &l.keys[i]; c.forfeit() {
			_ = l.finish(ctx, c, VerdictRelease, nil) // or it ends by itself
		}
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
		g.takeBack(ctx, h, abandonFor)
	}()
}

// takeBack releases a key for as long as it takes, within d; or the lease ends by itself.
func (g *Guard) takeBack(ctx context.Context, h Holder, d time.Duration) {
	_ = retry(context.WithoutCancel(ctx), time.Now().Add(d), func(ctx context.Context) error {
		return g.store.Release(ctx, h)
	})
}

// again reports whether a call to the store failed in a way that may pass.
func again(err error) bool {
	return err != nil && !lost(err) && !errors.Is(err, ErrRecordUnreadable)
}

// retry repeats op at growing distances until it need not be repeated or deadline has passed, and
// returns its last error.
func retry(ctx context.Context, deadline time.Time, op func(context.Context) error) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if err := op(ctx); !again(err) || !sleep(ctx, pause) {
			return err
		}
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
