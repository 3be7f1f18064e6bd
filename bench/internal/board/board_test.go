package board_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/bench/internal/board"
)

// open maps one board twice, as two processes do.
func open(t *testing.T) (one, other *board.Slot) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "board")
	a, err := board.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := board.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return a.Slot(3), b.Slot(3)
}

func TestOneAfterTheOtherIsNoViolation(t *testing.T) {
	one, other := open(t)
	for i := range uint64(10) {
		one.Enter(2*i + 1).Leave()
		other.Enter(2*i + 2).Leave()
	}
	if v, l, n := one.Violations(), one.Lost(), one.Entries(); v != 0 || l != 0 || n != 20 {
		t.Errorf("%d violations, %d lost updates, %d entries; want 0, 0, 20", v, l, n)
	}
}

func TestTwoAtOnceIsAViolation(t *testing.T) {
	one, other := open(t)
	first := one.Enter(1)
	second := other.Enter(2)
	if !one.Held() {
		t.Error("nobody is on the board")
	}
	second.Leave()
	first.Leave()
	if v := other.Violations(); v != 1 {
		t.Errorf("%d violations, want 1", v)
	}
	if l := other.Lost(); l != 1 {
		t.Errorf("%d lost updates, want 1", l)
	}
	if one.Held() {
		t.Error("somebody is on the board still")
	}
	one.Reset()
	if v, l := other.Violations(), other.Lost(); v != 0 || l != 0 {
		t.Errorf("%d violations and %d lost updates after a reset", v, l)
	}
}

func TestMutexIsNoViolation(t *testing.T) {
	one, other := open(t)
	var mu sync.Mutex
	var running sync.WaitGroup
	for g := range uint64(8) {
		running.Go(func() {
			for range 200 {
				mu.Lock()
				slot := one
				if g%2 == 0 {
					slot = other
				}
				slot.Enter(g + 1).Leave()
				mu.Unlock()
			}
		})
	}
	running.Wait()
	if v, l := one.Violations(), one.Lost(); v != 0 || l != 0 {
		t.Errorf("%d violations, %d lost updates under a mutex", v, l)
	}
}
