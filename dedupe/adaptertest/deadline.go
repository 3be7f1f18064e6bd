package adaptertest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var deadlineScenarios = []scenario{
	{"OfTheClient", func(t *trial) {
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, func(r run) Answer {
			t.untilOver(r)
			g.wait(r)
			return r.answer()
		})
		// It may be over before the handler runs, even before the store is asked.
		for allowed := 50 * time.Millisecond; t.runs.Load() == 0; allowed *= 2 {
			ctx, cancel := context.WithTimeout(t.Context(), allowed)
			if got := t.send(ctx, t.request("k")); got.err == nil && got.Refused == dedupe.Proceed {
				t.Fatalf("got %+v; want no reply", got)
			}
			cancel()
		}
		g.arrival()
		t.refuse(dedupe.InFlight, t.request("k"))
		g.open()
		t.wantAnswer(1, true, t.until(t.request("k"), dedupe.InFlight))
		t.wantRuns(1)
	}},
	{"OfTheServer", func(t *trial) {
		var d deadline
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}, Deadline: d.set}, func(r run) Answer {
			t.untilOver(r)
			return r.answer()
		})
		t.wantAnswer(1, false, d.admitted(t, t.request("k")))
		t.replay(1, t.request("k"))
		t.wantRuns(1)
	}},
	{"OfTheServerUnderBothGuards", func(t *trial) {
		var d deadline
		t.serveWith(Mount{Group: []*dedupe.Guard{t.once()}, Route: []*dedupe.Guard{t.account()}, Deadline: d.set}, func(r run) Answer {
			if r.number == 1 {
				t.untilOver(r)
			}
			return r.answer()
		})
		t.wantAnswer(1, false, d.admitted(t, t.request("k")))
		t.replay(1, t.request("k"))
		t.proceed(2, t.request("l")) // the resource is free
		t.wantRuns(2)
	}},
	{"HandlerThatGivesUpIsNotKept", func(t *trial) {
		var d deadline
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}, Deadline: d.set}, func(r run) Answer {
			if r.number > 1 {
				return r.answer()
			}
			t.untilOver(r)
			return Answer{Err: r.Err()}
		})
		t.wantTrouble(d.admitted(t, t.request("k")))
		t.proceed(2, t.request("k"))
		t.replay(2, t.request("k"))
		t.wantRuns(2)
	}},
	{"OfAWaiterForTheAnswer", func(t *trial) {
		t.waitsToTheDeadline(dedupe.InFlight, t.once(dedupe.WithWait(2*patience)))
	}},
	{"OfAWaiterForTheResource", func(t *trial) {
		t.waitsToTheDeadline(dedupe.Locked, t.account(dedupe.WithWait(2*patience)))
	}},
}

// deadline is a [Mount.Deadline]. There is none until a length is set, and once it has been reset.
type deadline struct{ allowed atomic.Int64 }

func (d *deadline) set(ctx context.Context) (context.Context, context.CancelFunc) {
	if allowed := time.Duration(d.allowed.Load()); allowed > 0 {
		return context.WithTimeout(ctx, allowed)
	}
	return ctx, func() {}
}

// admitted sends a request whose deadline passes while its handler runs, and returns the reply. A
// deadline that has passed before that is followed by a longer one.
func (d *deadline) admitted(t *trial, r Request) outcome {
	t.Helper()
	for allowed := 50 * time.Millisecond; ; allowed *= 2 {
		d.allowed.Store(int64(allowed))
		got := t.send(t.Context(), r)
		if t.runs.Load() > 0 {
			d.allowed.Store(0)
			return got
		}
		// A claim of which nobody knows whether it was carried out is in the way for a moment.
		if got.err != nil || got.Refused != dedupe.StoreUnavailable && got.Refused != dedupe.InFlight {
			t.Fatalf("without a run, got %+v", got)
		}
	}
}

// untilOver returns when the context of a handler has ended.
func (t *trial) untilOver(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-t.over:
	}
}

// waitsToTheDeadline checks that a request that waits for another one, which goes on, is refused when
// its time is over.
func (t *trial) waitsToTheDeadline(want dedupe.Outcome, guard *dedupe.Guard) {
	t.Helper()
	var d deadline
	g := t.newGate()
	t.serveWith(Mount{Route: []*dedupe.Guard{guard}, Deadline: d.set}, g.first)
	first := g.occupy(t.request("k"))
	d.allowed.Store(int64(50 * time.Millisecond))
	got := t.send(t.Context(), t.request("k"))
	if got.Refused == dedupe.StoreUnavailable { // it was over while the store was asked
		want = dedupe.StoreUnavailable
	}
	t.wantRefusal(want, got)
	t.wantAnswer(1, false, g.release(first))
	t.wantRuns(1)
}
