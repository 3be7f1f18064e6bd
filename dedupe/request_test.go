package dedupe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// request is a [dedupe.Call] of which a test says how everything goes. The zero value of each
// field is the ordinary case.
type request struct {
	ctx       context.Context // Request.Context has to return it
	operation string
	safe      bool
	params    map[string]string
	problems  map[string]error // what asking for a param fails with
	payload   dedupe.Payload
	tooLarge  bool
	handler   func(context.Context)
	answer    func() ([]byte, dedupe.Verdict)
	replay    func([]byte) error

	// What became of it.
	ran      int
	recorded bool
	replayed string
}

// ask returns a request of alice whose key functions give keys.
func ask(keys ...string) *request {
	r := &request{
		ctx:       context.Background(),
		operation: "POST /transfers",
		params:    map[string]string{"caller": "alice"},
		problems:  map[string]error{},
	}
	for i, key := range keys {
		r.params[[]string{"key", "also"}[i]] = key
	}
	return r
}

// doing makes handler the request's handler.
func (r *request) doing(handler func(context.Context)) *request {
	r.handler = handler
	return r
}

// answering makes text the answer that the handler gives and that is kept.
func (r *request) answering(text string) *request {
	r.answer = func() ([]byte, dedupe.Verdict) { return []byte(text), dedupe.VerdictKeep }
	return r
}

func (r *request) deciding(verdict dedupe.Verdict) *request {
	r.answer = func() ([]byte, dedupe.Verdict) { return []byte("answer"), verdict }
	return r
}

func (r *request) with(ctx context.Context) *request {
	r.ctx = ctx
	return r
}

// through takes the request through guards.
func (r *request) through(guards ...*dedupe.Guard) error { return dedupe.Do(r.ctx, guards, r) }

// start takes the request through guards on a goroutine of its own.
func (r *request) start(guards ...*dedupe.Guard) <-chan error {
	result := make(chan error, 1)
	go func() { result <- r.through(guards...) }()
	return result
}

func (r *request) Invoke(ctx context.Context) {
	r.ran++
	if r.handler != nil {
		r.handler(ctx)
	}
}

func (r *request) Record() { r.recorded = true }

func (r *request) Answer(bool) ([]byte, dedupe.Verdict) {
	if r.answer == nil {
		return []byte("answer"), dedupe.VerdictKeep
	}
	return r.answer()
}

func (r *request) Replay(answer []byte) error {
	if r.replay != nil {
		return r.replay(answer)
	}
	r.replayed = string(answer)
	return nil
}

func (r *request) Context() context.Context { return r.ctx }
func (r *request) Operation() string        { return r.operation }
func (r *request) Safe() bool               { return r.safe }
func (r *request) Header(string) []string   { return nil }
func (r *request) Value(key any) any        { return r.ctx.Value(key) }

func (r *request) Param(name string) (string, error) { return r.params[name], r.problems[name] }
func (r *request) Field(path string) (string, error) { return r.Param(path) }
func (r *request) Payload() (dedupe.Payload, error) {
	if r.tooLarge {
		return dedupe.Payload{}, dedupe.ErrPayloadTooLarge
	}
	return r.payload, nil
}

func param(name string) dedupe.KeyFunc {
	return func(r dedupe.Request) (string, error) { return r.Param(name) }
}

// anyCaller is the caller of jobs, which come from nobody.
func anyCaller(dedupe.Request) (string, error) { return "anyone", nil }

func serialize(tb testing.TB, store dedupe.Store, options ...dedupe.Option) *dedupe.Guard {
	tb.Helper()
	return inDomain(tb, store, "account", options...)
}

func inDomain(tb testing.TB, store dedupe.Store, name string, options ...dedupe.Option) *dedupe.Guard {
	tb.Helper()
	guard, err := dedupe.Serialize(store, name, param("key"), options...)
	if err != nil {
		tb.Fatal(err)
	}
	return guard
}

// transfers returns a guard that locks two accounts.
func transfers(tb testing.TB, store dedupe.Store, options ...dedupe.Option) *dedupe.Guard {
	tb.Helper()
	return serialize(tb, store, append(options, dedupe.WithAlso(param("also")))...)
}

func once(tb testing.TB, store dedupe.Store, options ...dedupe.Option) *dedupe.Guard {
	tb.Helper()
	guard, err := dedupe.Once(store, param("caller"), param("key"), options...)
	if err != nil {
		tb.Fatal(err)
	}
	return guard
}

// jobs returns a Once for Run and Fetch.
func jobs(tb testing.TB, store dedupe.Store, options ...dedupe.Option) *dedupe.Guard {
	tb.Helper()
	guard, err := dedupe.Once(store, anyCaller, nil, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return guard
}

// bubble runs test on a fake clock. Whatever the test leaves behind in the background has an hour to
// end; a goroutine that is still there then fails the test.
func bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Hour)
		test(t)
	})
}

// build is a constructor with its key functions filled in.
type build = func(testing.TB, dedupe.Store, ...dedupe.Option) *dedupe.Guard

// eachGuard runs test for a Serialize and for a Once.
func eachGuard(t *testing.T, test func(*testing.T, build)) {
	t.Helper()
	t.Run("Serialize", func(t *testing.T) { test(t, serialize) })
	t.Run("Once", func(t *testing.T) { test(t, once) })
}

// lasting returns a handler that takes d, whatever becomes of its context.
func lasting(d time.Duration) func(context.Context) {
	return func(context.Context) { time.Sleep(d) }
}

// untilCancelled is a handler that does what handlers ought to.
func untilCancelled(ctx context.Context) { <-ctx.Done() }

// refused checks that err is a refusal with the wanted outcome, and returns it.
func refused(tb testing.TB, err error, want dedupe.Outcome) *dedupe.Refusal {
	tb.Helper()
	var refusal *dedupe.Refusal
	if !errors.As(err, &refusal) {
		tb.Fatalf("got the error %v, want a refusal with the outcome %v", err, want)
	}
	if refusal.Outcome != want {
		tb.Fatalf("got the outcome %v (%v), want %v", refusal.Outcome, err, want)
	}
	return refusal
}

// proceeded checks that nobody refused the request and that its handler ran once.
func (r *request) proceeded(tb testing.TB, err error) {
	tb.Helper()
	if err != nil || r.ran != 1 {
		tb.Fatalf("the handler ran %d times, with the error %v; want once and nil", r.ran, err)
	}
}

// wasReplayed checks that the request got an earlier one's answer.
func (r *request) wasReplayed(tb testing.TB, err error, want string) {
	tb.Helper()
	if err != nil || r.ran != 0 || r.replayed != want {
		tb.Fatalf("the handler ran %d times, with the error %v and the replay %q; want a replay of %q", r.ran, err, r.replayed, want)
	}
}

func mustMatch(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("%q does not match %q", err, target)
		}
	}
}
