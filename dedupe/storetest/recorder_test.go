package storetest

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
	skipped bool
}

// record runs c and returns the recorder when it has ended.
func record(t testing.TB, store *faulty, s settings, c testCase) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(newTrial(r, store, s, hurry))
	}()
	<-done
	return r
}

func (r *recorder) fail(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == "" {
		r.failure = text
	}
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.fail(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *recorder) Skip(...any) {
	r.skipped = true
	runtime.Goexit()
}
