package dedupe_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

// replicas returns stores of processes that share one store behind them.
func replicas(n int) []*spy {
	behind := memstore.New()
	all := make([]*spy, n)
	for i := range all {
		all[i] = &spy{behind: behind}
	}
	return all
}

// atGates is a bubble after which nobody may be left at the gates of the stores.
func atGates(t *testing.T, n int, test func(*testing.T, []*spy)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		stores := replicas(n)
		test(t, stores)
		time.Sleep(time.Hour)
		for i, s := range stores {
			if n := dedupe.Gates(s); n != 0 {
				t.Errorf("%d gates of process %d are left behind", n, i)
			}
		}
		free, err := stores[0].behind.Claim(t.Context(), dedupe.Claim{Lease: time.Second})
		if err != nil || free.Status != dedupe.StatusGranted {
			t.Errorf("the store found %v, %v", free.Status, err)
		}
		if left := stores[0].behind.(*memstore.Store).Len(); left > 2 {
			t.Errorf("%d records are left behind", left)
		}
	})
}

// turns notes in which order handlers run, and that they run one at a time.
type turns struct {
	mu     sync.Mutex
	inside int
	names  []string
	fences []uint64
}

// of returns a handler that takes d for its turn.
func (s *turns) of(t *testing.T, name string, d time.Duration) func(context.Context) {
	return func(ctx context.Context) {
		s.mu.Lock()
		if s.inside++; s.inside != 1 {
			t.Errorf("%d run at the same time", s.inside)
		}
		s.names = append(s.names, name)
		if lease, ok := dedupe.LeaseFrom(ctx); ok {
			s.fences = append(s.fences, lease.Fence())
		}
		s.mu.Unlock()
		time.Sleep(d)
		s.mu.Lock()
		s.inside--
		s.mu.Unlock()
	}
}

func (s *turns) were(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.names, want) {
		t.Errorf("they ran in the order %v, want %v", s.names, want)
	}
	for i := range len(s.fences) - 1 {
		if s.fences[i+1] <= s.fences[i] {
			t.Errorf("fence %d after fence %d", s.fences[i+1], s.fences[i])
		}
	}
}

// arrive starts requests one after the other.
func (s *turns) arrive(t *testing.T, guard *dedupe.Guard, d time.Duration, names ...string) (results []<-chan error) {
	for _, name := range names {
		results = append(results, ask("7").doing(s.of(t, name, d)).start(guard))
		synctest.Wait()
	}
	return results
}

func allProceeded(t *testing.T, results ...[]<-chan error) {
	t.Helper()
	for _, some := range results {
		for _, result := range some {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
	}
}
