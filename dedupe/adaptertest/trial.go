package adaptertest

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

// trial is one run of one scenario, with keys that nothing else uses. Its methods end the scenario
// when something is not as they say; of them, only send may be called on other goroutines.
type trial struct {
	testing.TB

	adapter Adapter
	store   dedupe.Store
	id      string // a part of all keys
	client  Client
	runs    atomic.Int64
	over    chan struct{} // closed before a server stops: no handler stands in its way
	end     func()        // closes over
}

func newTrial(t testing.TB, adapter Adapter, store dedupe.Store) *trial {
	over := make(chan struct{})
	return &trial{
		TB: t, adapter: adapter, store: store, id: rand.Text(),
		over: over, end: sync.OnceFunc(func() { close(over) }),
	}
}

// guarded returns one of the constructors' results.
func (t *trial) guarded(guard *dedupe.Guard, err error) *dedupe.Guard {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// once returns a Once for the key and the caller of a request.
func (t *trial) once(options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	caller := keyfuncs.First(keyfuncs.Header(CallerHeader), keyfuncs.Const("anybody"))
	return t.guarded(dedupe.Once(t.store, caller, keyfuncs.Header(KeyHeader), options...))
}

// account returns a Serialize on the resource of a request.
func (t *trial) account(options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	return t.guarded(dedupe.Serialize(t.store, "account", keyfuncs.Param(ResourceParam), options...))
}

// run is one run of the handler.
type run struct {
	context.Context //nolint:containedctx // the handler's: a run is its argument

	number int64
	text   string
}

// answer is what a handler answers if nothing else is said.
func (r run) answer() Answer { return Answer{Text: textOf(r.number)} }

func textOf(run int64) string { return fmt.Sprintf("run %d", run) }

// serve mounts a handler that answers with the number of its run.
func (t *trial) serve(m Mount) {
	t.Helper()
	t.serveWith(m, run.answer)
}

// serveWith mounts handler.
func (t *trial) serveWith(m Mount, handler func(run) Answer) {
	t.Helper()
	m.Handler = func(ctx context.Context, text string) Answer {
		return handler(run{ctx, t.runs.Add(1), text})
	}
	t.client = t.adapter.Serve(t, m)
	t.Cleanup(t.end)
}

// request returns a request with a key that is the same for the same name.
func (t *trial) request(key string) Request {
	return Request{Keys: []string{t.key(key)}, Resource: t.resource("7"), Text: "10 EUR"}
}

func (t *trial) key(name string) string      { return name + "-" + t.id }
func (t *trial) resource(name string) string { return name + "-" + t.id }

// outcome is a reply, or why there is none.
type outcome struct {
	Reply
	err error
}

// send sends a request.
func (t *trial) send(ctx context.Context, r Request) outcome {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reply, err := t.client.Send(ctx, r)
	return outcome{reply, err}
}

// start sends a request and returns where its reply will be.
func (t *trial) start(ctx context.Context, r Request) <-chan outcome {
	replies := make(chan outcome, 1)
	go func() { replies <- t.send(ctx, r) }()
	return replies
}

// refuse sends a request that is to be turned away.
func (t *trial) refuse(want dedupe.Outcome, r Request) Reply {
	t.Helper()
	got := t.send(t.Context(), r)
	t.wantRefusal(want, got)
	return got.Reply
}

// proceed sends a request that is to be answered by a run of the handler.
func (t *trial) proceed(run int64, r Request) Reply {
	t.Helper()
	got := t.send(t.Context(), r)
	t.wantAnswer(run, false, got)
	return got.Reply
}

// replay sends a request that is to get the answer of an earlier run.
func (t *trial) replay(run int64, r Request) Reply {
	t.Helper()
	got := t.send(t.Context(), r)
	t.wantAnswer(run, true, got)
	return got.Reply
}

func (t *trial) wantAnswer(run int64, replayed bool, got outcome) {
	t.Helper()
	if got.err != nil || got.Refused != dedupe.Proceed || got.Replayed != replayed || got.Status != OK ||
		got.Body != textOf(run) || got.RetryAfter != 0 || got.Flaw != "" {
		t.Fatalf("got %+v; want the answer of run %d, replayed: %t", got, run, replayed)
	}
}

// wantRefusal checks all that a client is told of an outcome, and that it is told no key.
func (t *trial) wantRefusal(want dedupe.Outcome, got outcome) {
	t.Helper()
	if got.err != nil || got.Refused != want || got.Replayed || got.Status != t.adapter.Refusals[want] || got.Flaw != "" {
		t.Fatalf("got %+v; want %v with the status %q", got, want, t.adapter.Refusals[want])
	}
	if asked := got.RetryAfter >= time.Second; asked != want.Retryable() || (got.RetryAfter != 0) != asked {
		t.Fatalf("%v tells the client to retry after %v", want, got.RetryAfter)
	}
	if told := got.Body + got.Detail; strings.Contains(told, t.id) || strings.Contains(told, secret) {
		t.Fatalf("%v tells the key or the cause: %+v", want, got)
	}
}

// wantRuns checks how often the handler has begun to run.
func (t *trial) wantRuns(want int64) {
	t.Helper()
	if got := t.runs.Load(); got != want {
		t.Fatalf("the handler ran %d times; want %d", got, want)
	}
}

// receive returns what comes over a channel.
func receive[T any](t *trial, from <-chan T, what string) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
	return value
}

// await returns when something has become true.
func (t *trial) await(what string, happened func() bool) {
	t.Helper()
	for began := time.Now(); !happened(); time.Sleep(tick) {
		if time.Since(began) > patience {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// until sends a request again and again while the guards' decision is one of before, and returns the
// first reply that is not.
func (t *trial) until(r Request, before ...dedupe.Outcome) outcome {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; {
		if got := t.send(t.Context(), r); got.err != nil || !slices.Contains(before, got.outcome()) {
			return got
		}
		time.Sleep(tick)
	}
	t.Fatalf("the outcome is one of %v, and stays so", before)
	return outcome{}
}

// together sends n requests at once and returns their replies.
func (t *trial) together(n int, r func(i int) Request) []outcome {
	t.Helper()
	replies := make([]outcome, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { replies[i] = t.send(t.Context(), r(i)) })
	}
	all.Wait()
	return replies
}
