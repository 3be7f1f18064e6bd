package waiting

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// round is what each of several processes does with one key: so many goroutines hold it so many times.
type round struct {
	Ledger     ledger
	Goroutines int
	Cycles     int           // of each goroutine
	Hold       time.Duration // at most, each time
}

// tally is how a process fared in a round.
type tally struct {
	PassedBy uint64 // the most grants that others had while one waited
}

func (r *round) run(ctx context.Context, guard *dedupe.Guard, key string) (tally, error) {
	var sum tally
	var failed error
	var mu sync.Mutex
	var group sync.WaitGroup
	for range r.Goroutines {
		group.Go(func() {
			for range r.Cycles {
				passedBy, err := r.cycle(ctx, guard, key)
				mu.Lock()
				sum.PassedBy = max(sum.PassedBy, passedBy)
				if err != nil {
					failed = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return sum, failed
}

func (r *round) cycle(ctx context.Context, guard *dedupe.Guard, key string) (passedBy uint64, err error) {
	_, before, err := r.Ledger.read()
	if err != nil {
		return 0, err
	}
	err = guard.Run(ctx, key, func(ctx context.Context) error {
		lease, _ := guard.Lease(ctx)
		number, err := r.Ledger.enter(lease.Fence())
		if err != nil {
			return err
		}
		passedBy = number - before - 1
		if r.Hold > 0 {
			time.Sleep(rand.N(r.Hold))
		}
		return r.Ledger.leave()
	})
	return passedBy, err
}

// ledger is a directory in which processes note their grants of one key: so each sees whether it is alone,
// and whether its fence is above all before.
type ledger string

func newLedger(t *testing.T) ledger {
	t.Helper()
	l := ledger(t.TempDir())
	succeed(t, os.WriteFile(l.grants(), make([]byte, 16), 0o600))
	return l
}

func (l ledger) grants() string { return filepath.Join(string(l), "grants") }

func (l ledger) holder() string { return filepath.Join(string(l), "holder") }

// read returns the last fence, and how many grants there were.
func (l ledger) read() (fence, grants uint64, err error) {
	content, err := os.ReadFile(l.grants())
	if err != nil || len(content) != 16 {
		return 0, 0, fmt.Errorf("the ledger has %d bytes: %w", len(content), err)
	}
	return binary.BigEndian.Uint64(content), binary.BigEndian.Uint64(content[8:]), nil
}

// enter notes a grant, and returns its number.
func (l ledger) enter(fence uint64) (number uint64, err error) {
	if err := os.Mkdir(l.holder(), 0o700); err != nil {
		return 0, fmt.Errorf("two holders: %w", err)
	}
	last, grants, err := l.read()
	if err != nil {
		return 0, err
	}
	if fence <= last {
		return 0, fmt.Errorf("fence %d after fence %d", fence, last)
	}
	file, err := os.OpenFile(l.grants(), os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	content := binary.BigEndian.AppendUint64(nil, fence)
	_, err = file.WriteAt(binary.BigEndian.AppendUint64(content, grants+1), 0)
	return grants + 1, err
}

// leave notes that the holder lets go.
func (l ledger) leave() error { return os.Remove(l.holder()) }
