package waiting

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

// process is who takes part in a line: a member of this process, or a child.
type process interface {
	begin(r request) *attempt
}

// request is what an attempt is to do.
type request struct {
	Kind  kind
	Key   string
	Wait  time.Duration
	Round *round // for cycles
}

type kind string

const (
	lock   kind = "lock"   // to hold a key until it is told to let go
	fetch  kind = "fetch"  // to compute the value of a key, or get it from another
	cycles kind = "cycles" // to hold a key many times on many goroutines
)

// attempt is one try to get a key.
type attempt struct {
	granted chan uint64         // the fence, each time that it has the key; closed with its end
	ended   chan end            // told once
	finish  func(result string) // ends the handler; "" makes it fail
	leave   func()              // as a client that hangs up
}

// end is what became of an attempt.
type end struct {
	Outcome string // "done", "conflict", "failed", "left", "lost", "unavailable" or what the error says
	Value   string // of a fetch
	Tally   tally  // of cycles
	Waited  time.Duration
}

func newAttempt() *attempt {
	return &attempt{granted: make(chan uint64, 16), ended: make(chan end, 1)}
}

// member is a process' share in the line. Two of them in one process, each with a store of its own, are
// to each other as two processes are.
type member struct {
	store dedupe.Store
	lease time.Duration
}

func newMember(store dedupe.Store, lease int64) member { return member{store, time.Duration(lease)} }

var errHandler = errors.New("the handler failed")

// begin makes an attempt.
func (m member) begin(r request) *attempt {
	a := newAttempt()
	ctx, cancel := context.WithCancel(context.Background())
	results := make(chan string, 1)
	a.finish = func(result string) { results <- result }
	a.leave = cancel
	handle := func(ctx context.Context) (string, error) {
		lease, _ := dedupe.LeaseFrom(ctx)
		a.granted <- lease.Fence()
		select {
		case result := <-results:
			if result == "" {
				return "", errHandler
			}
			return result, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	go func() {
		defer cancel()
		began := time.Now()
		var e end
		var err error
		switch r.Kind {
		case fetch:
			e.Value, err = dedupe.Fetch(ctx, m.once(r), r.Key, handle)
		case cycles:
			e.Tally, err = r.Round.run(ctx, m.serialize(r), r.Key)
		case lock:
			err = m.serialize(r).Run(ctx, r.Key, func(ctx context.Context) error {
				_, err := handle(ctx)
				return err
			})
		}
		e.Outcome, e.Waited = outcomeOf(err), time.Since(began)
		close(a.granted)
		a.ended <- e
	}()
	return a
}

func (m member) serialize(r request) *dedupe.Guard {
	guard, err := dedupe.Serialize(m.store, "waiting", nil, dedupe.WithLease(m.lease), dedupe.WithWait(r.Wait))
	must(err)
	return guard
}

func (m member) once(r request) *dedupe.Guard {
	guard, err := dedupe.Once(m.store, keyfuncs.Anyone, nil, dedupe.WithLease(m.lease), dedupe.WithWait(r.Wait))
	must(err)
	return guard
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, errHandler):
		return "failed"
	case errors.Is(err, dedupe.ErrLeaseLost):
		return "lost"
	case errors.Is(err, dedupe.ErrConflict):
		return "conflict"
	case errors.Is(err, dedupe.ErrStoreUnavailable):
		return "unavailable"
	case errors.Is(err, context.Canceled):
		return "left"
	default:
		return err.Error()
	}
}

// awaitGrant returns the fence of an attempt when it has the key.
func (a *attempt) awaitGrant(t *testing.T) uint64 {
	t.Helper()
	select {
	case fence, ok := <-a.granted:
		if !ok {
			t.Fatalf("the attempt ended without the key: %+v", <-a.ended)
		}
		return fence
	case <-time.After(patience):
		t.Fatalf("the key was not granted within %v", patience)
		panic("unreachable")
	}
}

// awaitEnd returns how an attempt ended, and checks that it ended as expected.
func (a *attempt) awaitEnd(t *testing.T, outcome string) end {
	t.Helper()
	select {
	case e := <-a.ended:
		if e.Outcome != outcome {
			t.Fatalf("the attempt ended with %+v, want %q", e, outcome)
		}
		return e
	case <-time.After(patience):
		t.Fatalf("the attempt did not end within %v", patience)
		panic("unreachable")
	}
}

// release lets go of the key and returns when the store knows.
func (a *attempt) release(t *testing.T) {
	t.Helper()
	a.finish("value")
	a.awaitEnd(t, "done")
}

// wantWaiting checks that an attempt does not have the key.
func (a *attempt) wantWaiting(t *testing.T) {
	t.Helper()
	select {
	case fence, ok := <-a.granted:
		if !ok {
			t.Fatalf("the attempt ended: %+v", <-a.ended)
		}
		t.Fatalf("the attempt has the key, with fence %d, while another has it", fence)
	default:
	}
}
