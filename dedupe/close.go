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
// waits until every running handler has returned and the store knows. Those stay guarded
// meanwhile. If ctx ends first, the handlers that are left have their contexts cancelled with a
// cause that matches [ErrLeaseLost] and [ErrClosed]; the keys of a Serialize are released, the
// claims of a Once are left to their leases; and Close returns an error that says how many there
// were. Close may be called again.
//
// Call it after the server has stopped taking requests, before the store's client is closed.
func (g *Guard) Close(ctx context.Context) error {
	select {
	case <-g.holders.close():
		return nil
	case <-ctx.Done():
	}
	left := g.holders.rest()
	if len(left) == 0 {
		return nil
	}
	for _, l := range left {
		l.evict()
	}
	return errors.Join(fmt.Errorf("dedupe: %s: closed with %d handlers still running", g.name, len(left)), context.Cause(ctx))
}
