package redisstore

import (
	"context"
	"sync/atomic"
	"time"
)

// budget bounds each call. A timer for each of them would cost a tenth of the call, because every
// timer that becomes the next one wakes the thread that polls the network. So calls that begin
// shortly after one another share a timer: all of them have the deadline of the first.
type budget struct {
	length  time.Duration
	current atomic.Pointer[window]
}

// window is the time in which calls begin that share a deadline.
type window struct {
	context.Context //nolint:containedctx // it is one, shared

	closes time.Time
}

// within returns ctx with a deadline after 15/16 to all of the budget, or its own if that is
// earlier. It does not notice when ctx is cancelled: that would cost a goroutine or a lock, and the
// deadline is near.
func (b *budget) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, bounded := ctx.Deadline(); bounded && time.Until(deadline) < b.length {
		return context.WithDeadline(context.WithoutCancel(ctx), deadline)
	}
	now := time.Now()
	w := b.current.Load()
	if w == nil || !now.Before(w.closes) {
		shared, cancel := context.WithDeadline(context.Background(), now.Add(b.length))
		context.AfterFunc(shared, cancel) // at the deadline, which is all there is to it
		w = &window{shared, now.Add(b.length / 16)}
		b.current.Store(w)
	}
	return &bounded{w.Context, ctx}, func() {}
}

// bounded has the deadline of one context and the values of another.
type bounded struct {
	context.Context //nolint:containedctx // it is one

	values context.Context //nolint:containedctx // see above
}

func (b *bounded) Value(key any) any { return b.values.Value(key) }
