package redistest

import (
	"errors"
	"sync"
)

var errLinkClosed = errors.New("connection closed")

// gate lets the traffic of all connections pass, or none.
type gate struct {
	mu   sync.RWMutex
	open chan struct{} // closed while traffic may pass
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)

	return g
}

// shut returns when nothing passes any more.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.isOpen() {
		g.open = make(chan struct{})
	}
}

func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()

	if !g.isOpen() {
		close(g.open)
	}
}

// isOpen is for those who hold the mutex.
func (g *gate) isOpen() bool {
	select {
	case <-g.open:
		return true
	default:
		return false
	}
}

// pass has action do its work, such as writing to a connection, while the gate
// is open. It gives up when done is closed.
func (g *gate) pass(done <-chan struct{}, action func() error) error {
	for {
		g.mu.RLock()
		open := g.open
		if g.isOpen() {
			defer g.mu.RUnlock()
			return action()
		}
		g.mu.RUnlock()

		select {
		case <-open:
		case <-done:
			return errLinkClosed
		}
	}
}
