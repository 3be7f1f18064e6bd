package bench

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// host is what redistest needs of a test, outside of one: a place for files, and an end at which
// everything it started goes away. What redistest does not call is nil and panics.
type host struct {
	testing.TB

	cleanups []func()
	failure  error
}

// failed is what Fatalf and Skipf panic with.
type failed struct{ error }

// attempt runs f, in which redistest may give up on h.
func (h *host) attempt(f func()) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			f, ok := reason.(failed)
			if !ok {
				panic(reason)
			}
			err = f.error
		}
	}()
	f()
	return nil
}

// close undoes everything in reverse order, and returns what went wrong on the way.
func (h *host) close() error {
	for len(h.cleanups) > 0 {
		last := h.cleanups[len(h.cleanups)-1]
		h.cleanups = h.cleanups[:len(h.cleanups)-1]
		h.failure = errors.Join(h.failure, h.attempt(last))
	}
	return h.failure
}

func (h *host) Helper() {}

func (h *host) Cleanup(f func()) { h.cleanups = append(h.cleanups, f) }

func (h *host) Errorf(format string, args ...any) {
	h.failure = errors.Join(h.failure, fmt.Errorf(format, args...))
}

func (h *host) Fatalf(format string, args ...any) { panic(failed{fmt.Errorf(format, args...)}) }

func (h *host) Skipf(format string, args ...any) { h.Fatalf(format, args...) }

func (h *host) TempDir() string {
	dir, err := os.MkdirTemp("", "interlock-bench-")
	if err != nil {
		h.Fatalf("%v", err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
