package dedupe

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// holders is the list of a guard's leases, from before their first claim until the store knows
// that they ended. The zero value is an empty list.
type holders struct {
	mu     sync.Mutex
	first  *Lease
	count  int
	closed bool
	empty  chan struct{} // made by close, closed when the last one leaves
}

// add reports whether the guard is open.
func (h *holders) add(l *Lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	l.next = h.first
	if h.first != nil {
		h.first.previous = l
	}
	h.first = l
	h.count++
	return true
}

func (h *holders) remove(l *Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.next != nil {
		l.next.previous = l.previous
	}
	if l.previous != nil {
		l.previous.next = l.next
	} else {
		h.first = l.next
	}
	h.count--
	if h.closed && h.count == 0 {
		close(h.empty)
	}
}

// close lets nobody in any more, and returns a channel that is closed when all have left.
func (h *holders) close() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		h.empty = make(chan struct{})
		if h.count == 0 {
			close(h.empty)
		}
	}
	return h.empty
}

// rest returns the leases that are left.
func (h *holders) rest() []*Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	var left []*Lease
	for l := h.first; l != nil; l = l.next {
		left = append(left, l)
	}
	return left
}

// Close refuses new requests with an error that matches [ErrClosed] and [ErrStoreUnavailable], and
// waits until every running handler has returned and the store knows, or the lease that it cannot be
// told of is over. Those stay guarded meanwhile. If ctx ends first, the handlers that are left have their contexts cancelled with a
// cause that matches [ErrLeaseLost] and [ErrClosed]; the keys of a Serialize are released, the
// claims of a Once are left to their leases; and Close returns an error that says how many there
// were. Close may be called again.
//
// Call it after the server has stopped taking requests, before the store's client is closed.
func (g *Guard) Close(ctx context.Context) error { return Close(ctx, g) }

// Close closes several guards as [Guard.Close] closes one, all at the same time.
func Close(ctx context.Context, guards ...*Guard) error {
	empty := make([]<-chan struct{}, len(guards))
	for i, g := range guards {
		empty[i] = g.holders.close()
	}
	for _, left := range empty {
		select {
		case <-left:
		case <-ctx.Done():
		}
	}
	var errs []error
	var left []*Lease
	for _, g := range guards {
		if rest := g.holders.rest(); len(rest) > 0 {
			left = append(left, rest...)
			errs = append(errs, fmt.Errorf("dedupe: %s: closed with %d handlers still running: %w", g.name, len(rest), context.Cause(ctx)))
		}
	}
	for _, l := range left { // all of them first, however long the store takes afterwards
		l.lose(errors.Join(ErrLeaseLost, ErrClosed))
	}
	var released sync.WaitGroup
	for _, l := range left {
		released.Go(func() { l.giveBack(context.WithoutCancel(ctx)) })
	}
	released.Wait()
	return errors.Join(errs...)
}
