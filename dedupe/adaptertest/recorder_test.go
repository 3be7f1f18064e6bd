package adaptertest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// recorder is a [testing.TB] whose failures are the subject of a test, not its result.
type recorder struct {
	testing.TB

	mu      sync.Mutex
	failure string
}

// record runs s through adapter and returns how it failed, "" if it did not.
func record(t testing.TB, adapter Adapter, s scenario) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(newTrial(r, adapter, Stores()["memstore"](t)))
	}()
	<-done
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

func (r *recorder) Helper() {}

func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Fatal(args ...any) { r.fail(fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) { r.fail(fmt.Sprintf(format, args...)) }

func (r *recorder) fail(text string) {
	r.mu.Lock()
	r.failure = text
	r.mu.Unlock()
	runtime.Goexit()
}
