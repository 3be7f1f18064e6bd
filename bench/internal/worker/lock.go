package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/bench/internal/board"
	"github.com/interlock-go/interlock/bench/internal/clock"
	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/wire"
)

// locks runs things under locks.
type locks struct {
	job   Job
	locks []contender.Lock // one for all goroutines, or one for each
	board *board.Board
	slot  *board.Slot
}

func openLocks(job Job, counter *wire.Counter) (*locks, error) {
	c, ok := contender.Named(job.Lock.Contender)
	if !ok {
		return nil, fmt.Errorf("no contender is named %q", job.Lock.Contender)
	}
	l := &locks{job: job}
	if job.Lock.Board != "" {
		b, err := board.Open(job.Lock.Board)
		if err != nil {
			return nil, err
		}
		l.board, l.slot = b, b.Slot(job.Lock.Slot)
	}
	count := 1
	if job.Lock.Apart {
		count = job.Goroutines
	}
	for range count {
		lock, err := c.Open(contender.Setting{Servers: job.Servers, Dial: counter.Dial, Lease: job.Lock.Lease, Watch: job.Lock.Watch})
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		l.locks = append(l.locks, lock)
	}
	return l, nil
}

// warmUps is how many locks are taken and released to open connections and load scripts.
const warmUps = 64

func (l *locks) warm(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(warmUps)
	for i := range max(min(l.job.Goroutines, warmUps), len(l.locks)) {
		group.Go(func() error {
			for n := range 4 {
				key := fmt.Sprintf("warm-up:%d:%d:%d", l.job.Process, i, n)
				if err := warmUp(ctx, l.locks[i%len(l.locks)], key); err != nil {
					return fmt.Errorf("warm-up: %w", err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// warmUp takes and releases a lock. It tries again when that takes long: on a busy machine a library
// can miss its own reply and wait for ever for a key that is free.
func warmUp(ctx context.Context, lock contender.Lock, key string) (err error) {
	for range 5 {
		attempt, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(3*time.Second, cancel)
		err = lock.Run(attempt, key, func(context.Context) {})
		timer.Stop()
		cancel()
		if err == nil {
			return nil
		}
	}
	return err
}

func (l *locks) do(ctx context.Context, goroutine, n int, turn *Turn) error {
	lock := l.locks[goroutine%len(l.locks)]
	key := l.job.Lock.Key
	if key == "" {
		turn.Key = uint64(l.job.Process)<<56 | uint64(goroutine)<<40 | uint64(n) //nolint:gosec // all are small
		key = "cold:" + strconv.FormatUint(turn.Key, 36)
	}
	err := lock.Run(ctx, key, func(ctx context.Context) {
		turn.Entered = clock.Now()
		if l.slot != nil {
			// A number that no other holder has: the exclusion is among operations, not goroutines.
			v := l.slot.Enter(uint64(l.job.Process+1)<<56 | uint64(goroutine)<<40 | uint64(n) + 1) //nolint:gosec // all are small
			defer v.Leave()
		}
		l.hold(ctx)
		turn.Left = clock.Now()
	})
	if turn.Entered != 0 && l.job.Lock.UntilLost {
		return nil // that the release of a lost lock fails is right
	}
	return err
}

func (l *locks) hold(ctx context.Context) {
	switch {
	case l.job.Lock.Hold == 0:
	case l.job.Lock.UntilLost:
		select {
		case <-ctx.Done():
		case <-time.After(l.job.Lock.Hold):
		}
	default:
		time.Sleep(l.job.Lock.Hold)
	}
}

// patience is how long a key that is wanted may stay free: eight times as long as the most patient
// contender takes to ask again.
const patience = 2 * time.Second

func (l *locks) stall(ctx context.Context, notBefore time.Duration) bool {
	if l.slot == nil || l.job.Lock.Watch { // or what is measured is how long nobody gets it
		<-ctx.Done()
		return false
	}
	ticker := time.NewTicker(patience / 20)
	defer ticker.Stop()
	begun := time.Now()
	changed, entries := begun, int64(-1)
	for {
		select {
		case <-ctx.Done():
			return false
		case now := <-ticker.C:
			if n := l.slot.Entries(); n != entries || l.slot.Held() {
				changed, entries = now, n
			}
			if now.Sub(changed) > patience && now.Sub(begun) > notBefore {
				return true
			}
		}
	}
}

func (l *locks) runs() int64 { return 0 }

func (l *locks) close() error {
	var errs []error
	if !l.job.Lock.UntilLost { // a server that is silent would keep it
		for _, lock := range l.locks {
			errs = append(errs, lock.Close())
		}
	}
	if l.board != nil {
		errs = append(errs, l.board.Close())
	}
	return errors.Join(errs...)
}
