package redistest_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// recorder is a test whose end is observed rather than suffered.
type recorder struct {
	testing.TB

	mu              sync.Mutex
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.failed = fmt.Sprintf(format, args...)
}

// outcome returns what the test was skipped or has failed with so far.
func (r *recorder) outcome() (skipped, failed string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.skipped, r.failed
}

// observe returns what the test is skipped or fails with, if it is.
func observe(t *testing.T, test func(tb testing.TB)) (skipped, failed string) {
	t.Helper()

	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done

	return r.outcome()
}

func TestEventually(t *testing.T) {
	calls := 0
	redistest.Eventually(t, patience, func() bool {
		calls++
		return calls == 3
	}, "three calls")
	if calls != 3 {
		t.Errorf("the condition was looked at %d times, want 3", calls)
	}

	reached := false
	_, failed := observe(t, func(tb testing.TB) {
		redistest.Eventually(tb, 30*time.Millisecond, func() bool { return false }, "pigs fly")
		reached = true
	})
	if want := "pigs fly: not within 30ms"; failed != want {
		t.Errorf("failed with %q, want %q", failed, want)
	}
	if reached {
		t.Error("the test went on")
	}
}

func TestStartWithoutServer(t *testing.T) {
	const missing = "no-such-server"
	want := missing + " not found: apt-get install " + missing

	for _, ci := range []string{"", "false"} {
		t.Setenv("CI", ci)
		skipped, failed := observe(t, func(tb testing.TB) { redistest.Start(tb, redistest.Binary(missing)) })
		if skipped != want || failed != "" {
			t.Errorf("CI=%q: skipped %q, failed %q", ci, skipped, failed)
		}
	}

	t.Setenv("CI", "true")
	t.Setenv("INTERLOCK_REDIS_SERVER", missing)
	skipped, failed := observe(t, func(tb testing.TB) { redistest.Start(tb) })
	if failed != want || skipped != "" {
		t.Errorf("CI=true: skipped %q, failed %q", skipped, failed)
	}
}

func TestStartFailureShowsLog(t *testing.T) {
	redistest.Start(t) // or skip, if there is no server

	_, failed := observe(t, func(tb testing.TB) { redistest.Start(tb, redistest.Config("--maxmemory", "plenty")) })
	if !strings.Contains(failed, "server exited") || !strings.Contains(failed, "plenty") {
		t.Errorf("failed with %q, which does not show why", failed)
	}
}
