// Package board is memory that the processes of a measurement share. It watches over exclusion
// without a command to the server that is measured, and without believing any lock: a holder writes
// itself on the board when it enters and off it when it leaves.
package board

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Slots is how many keys a board watches.
const Slots = 64

// Board is shared memory: a file mapped into each process. It is safe for concurrent use by all
// goroutines of all processes that opened it.
type Board struct {
	memory []byte
	slots  *[Slots]Slot
}

// Slot watches one key.
type Slot struct {
	holder     atomic.Uint64 // 0 when nobody holds the key
	violations atomic.Int64
	entries    atomic.Int64
	balance    atomic.Int64 // read on entering, written on leaving: two at once lose an update
	_          [32]byte     // a cache line of its own
}

const size = int(unsafe.Sizeof([Slots]Slot{}))

// Create makes the file that Open maps, with everything zero.
func Create(path string) (*Board, error) {
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		return nil, fmt.Errorf("create board: %w", err)
	}
	return Open(path)
}

// Open maps the file at path.
func Open(path string) (*Board, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // the path is the coordinator's own
	if err != nil {
		return nil, fmt.Errorf("open board: %w", err)
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("map board: %w", err)
	}
	return &Board{memory, (*[Slots]Slot)(unsafe.Pointer(&memory[0]))}, nil //nolint:gosec // a page is aligned
}

// Close unmaps the board. Its slots must not be used any more.
func (b *Board) Close() error { return unix.Munmap(b.memory) }

// Slot returns the i-th slot.
func (b *Board) Slot(i int) *Slot { return &b.slots[i] }

// Visit is one hold of a key.
type Visit struct {
	slot    *Slot
	holder  uint64
	alone   bool
	balance int64
}

// Enter notes that holder, which is not 0 and nobody else's, believes from now on that it holds the
// key. Somebody on the board already is a violation.
func (s *Slot) Enter(holder uint64) Visit {
	v := Visit{slot: s, holder: holder, alone: s.holder.CompareAndSwap(0, holder)}
	if !v.alone {
		s.violations.Add(1)
	}
	s.entries.Add(1)
	v.balance = s.balance.Load()
	return v
}

// Leave ends the visit. To find another than oneself on the board is a violation as well.
func (v Visit) Leave() {
	v.slot.balance.Store(v.balance + 1)
	if v.alone && !v.slot.holder.CompareAndSwap(v.holder, 0) {
		v.slot.violations.Add(1)
	}
}

// Held reports whether somebody is on the board.
func (s *Slot) Held() bool { return s.holder.Load() != 0 }

// Violations returns how often two held the key.
func (s *Slot) Violations() int64 { return s.violations.Load() }

// Entries returns how often the key was held.
func (s *Slot) Entries() int64 { return s.entries.Load() }

// Lost returns how many entries' updates another one overwrote. It is complete when nobody is inside.
func (s *Slot) Lost() int64 { return s.entries.Load() - s.balance.Load() }

// Reset makes the slot new. Nobody may be using it.
func (s *Slot) Reset() {
	s.holder.Store(0)
	s.violations.Store(0)
	s.entries.Store(0)
	s.balance.Store(0)
}
