package dedupe

import "context"

// Detach returns a context for work that goes on when the client hangs up, but not when a lease is
// lost: to stop half way because a connection broke is as wrong as to go on without the lock.
//
//	func withdraw(w http.ResponseWriter, r *http.Request) {
//		ctx := dedupe.Detach(r.Context())
//
// It has the values of ctx, and is cancelled when one of the leases in ctx is lost, with a cause that
// matches [ErrLeaseLost], or when the handler has returned. It does not end with ctx and has none of
// its deadlines. (The request's own context cannot tell both: once it has ended because the client
// left, a lease that is lost later does not show.) Without a lease in ctx it never ends.
func Detach(ctx context.Context) context.Context {
	lease := leaseOf(ctx)
	if lease == nil {
		return context.WithoutCancel(ctx)
	}
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	lease.watch(cancel)
	for outer := lease.outer; outer != nil; outer = outer.outer {
		outer.watch(cancel)
	}
	return detached
}

// watch has cancel called when the lease is lost or has ended.
func (l *Lease) watch(cancel context.CancelCauseFunc) {
	l.mu.Lock()
	cause := l.lost
	if cause == nil && l.ended {
		cause = context.Canceled
	}
	if cause == nil {
		l.watchers = append(l.watchers, cancel)
	}
	l.mu.Unlock()
	if cause != nil {
		cancel(cause)
	}
}
