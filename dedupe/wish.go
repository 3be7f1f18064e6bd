package dedupe

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// wish is what a handler wants done with its answer, over the adapter's policy.
type wish struct {
	verdict   Verdict
	retention time.Duration
	made      bool
}

// KeepAnswer has the answer to the request in ctx kept, also one that would be forgotten, such as a 500
// of which the handler knows that a repeat would do harm. Repeats get it for the retention given, or
// that of the guard if it is 0. An answer that cannot be kept, because it is streamed or too large,
// leaves its tombstone for as long.
//
// It takes effect when the handler returns, and not if it panics; the last call of KeepAnswer and
// [ForgetAnswer] counts, for every Once around the handler. The error matches [ErrNotOnce] where there
// is none, and names a retention that is not from 1 s to 90 days.
func KeepAnswer(ctx context.Context, retention time.Duration) error {
	if retention != 0 && (retention < minRetention || retention > maxRetention) {
		return fmt.Errorf("dedupe.KeepAnswer: retention %v must be from %v to %v, or 0 for that of the guard", retention, minRetention, maxRetention)
	}
	return makeWish(ctx, wish{VerdictKeep, retention, true})
}

// ForgetAnswer has the answer to the request in ctx not kept: the next request with its key runs. Where
// the handler has had effects, they will be had again. See [KeepAnswer] for when it takes effect.
func ForgetAnswer(ctx context.Context) error {
	return makeWish(ctx, wish{verdict: VerdictRelease, made: true})
}

// ErrNotOnce: the context is not that of a handler behind a [Once].
var ErrNotOnce = errors.New("dedupe: no Once guards this context")

func makeWish(ctx context.Context, w wish) error {
	found := ErrNotOnce
	for l := leaseOf(ctx); l != nil; l = l.outer {
		if l.guard.kind == kindOnce {
			l.mu.Lock()
			l.wish = w
			l.mu.Unlock()
			found = nil
		}
	}
	return found
}

// answer returns the answer of a handler that has returned, and what is to be done with it.
func (l *Lease) answer(call Call) ([]byte, Verdict) {
	l.mu.Lock()
	w := l.wish
	l.mu.Unlock()
	if w.made && w.verdict == VerdictRelease {
		return nil, VerdictRelease
	}
	return call.Answer(w.made)
}

// retention is how long the answer is kept.
func (l *Lease) retention() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wish.retention != 0 {
		return l.wish.retention
	}
	return l.guard.retention
}
