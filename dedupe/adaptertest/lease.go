package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var leaseScenarios = []scenario{
	{"IsInTheContext", func(t *trial) {
		once, account := t.once(), t.account()
		found := make(chan error, 1)
		t.serveWith(Mount{Group: []*dedupe.Guard{once}, Route: []*dedupe.Guard{account}}, func(r run) Answer {
			found <- errors.Join(checkLease(r, once), checkLease(r, account))
			return r.answer()
		})
		t.proceed(1, t.request("k"))
		if err := receive(t, found, "the handler"); err != nil {
			t.Fatal(err)
		}
		t.wantRuns(1)
	}},
	{"IsOverWithTheHandler", func(t *trial) {
		g := t.newGate()
		g.open()
		account := t.account()
		t.serveWith(Mount{Route: []*dedupe.Guard{account}}, g.first)
		t.proceed(1, t.request("k"))
		handler := g.arrival()
		receive(t, handler.Done(), "the end of the handler's context")
		lease, found := account.Lease(handler)
		if !found {
			t.Fatal("there is no lease")
		}
		if err := lease.Check(context.WithoutCancel(handler)); !errors.Is(err, dedupe.ErrLeaseLost) {
			t.Fatalf("Check returns %v", err)
		}
		t.wantRuns(1)
	}},
	{"FenceRises", func(t *trial) {
		account := t.account()
		fences := make(chan uint64, 5)
		t.serveWith(Mount{Route: []*dedupe.Guard{account}}, func(r run) Answer {
			if lease, found := account.Lease(r); found {
				fences <- lease.Fence()
			}
			return r.answer()
		})
		last := uint64(0)
		for i := range int64(cap(fences)) {
			t.proceed(i+1, t.request("k"))
			fence := receive(t, fences, "the fence")
			if fence <= last {
				t.Fatalf("fence %d comes after %d", fence, last)
			}
			last = fence
		}
	}},
	{"LostOfAResource", func(t *trial) {
		t.store = losing(t.store)
		account := t.account()
		t.loses(account, t.request("l"))
		t.wantRuns(2)
	}},
	{"LostOfAKey", func(t *trial) {
		t.store = losing(t.store)
		t.loses(t.once(), t.request("k"))
		t.replay(2, t.request("k")) // the successor's, not the late one's
		t.wantRuns(2)
	}},
	{"LostByTheMaximumHold", func(t *trial) {
		g := t.newGate()
		account := t.account(dedupe.WithLease(brief), dedupe.WithMaxHold(brief))
		t.serveWith(Mount{Route: []*dedupe.Guard{account}}, g.first)
		first, handler := g.admitted(t.request("k"))
		receive(t, handler.Done(), "the end of the lease")
		if cause := context.Cause(handler); !errors.Is(cause, dedupe.ErrLeaseLost) {
			t.Fatalf("the cause is %v", cause)
		}
		t.wantAnswer(2, false, t.until(t.request("k"), dedupe.Locked, dedupe.StoreUnavailable))
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(2)
	}},
	{"ReachesDetachedWork", func(t *trial) {
		t.store = losing(t.store)
		account := t.account()
		causes := make(chan error, 1)
		t.serveWith(Mount{Route: []*dedupe.Guard{account}}, func(r run) Answer {
			detached := dedupe.Detach(r)
			_ = checkLease(r, account)
			select {
			case <-detached.Done():
			case <-t.over:
			}
			causes <- context.Cause(detached)
			return r.answer()
		})
		t.proceed(1, t.request("k"))
		if cause := receive(t, causes, "the end of the detached work"); !errors.Is(cause, dedupe.ErrLeaseLost) {
			t.Fatalf("the cause is %v", cause)
		}
		t.wantRuns(1)
	}},
}

// checkLease checks that the guard's lease is in ctx, and valid.
func checkLease(ctx context.Context, guard *dedupe.Guard) error {
	lease, found := guard.Lease(ctx)
	switch {
	case !found:
		return fmt.Errorf("%s has no lease", guard.Name())
	case lease.Fence() == 0:
		return fmt.Errorf("the lease of %s has no fence", guard.Name())
	default:
		return lease.Check(ctx)
	}
}

// losing returns a store whose first owner finds that its key is free when it looks.
func losing(under dedupe.Store) dedupe.Store {
	var mu sync.Mutex
	var lost dedupe.Holder
	return &store{Store: under, extend: func(h dedupe.Holder) error {
		mu.Lock()
		defer mu.Unlock()
		if lost == (dedupe.Holder{}) {
			if err := under.Release(context.Background(), h); err != nil {
				return err
			}
			lost = h
		}
		if lost == h {
			return dedupe.ErrLeaseLost
		}
		return under.Extend(context.Background(), h, time.Minute)
	}}
}

// loses has the first handler lose its lease, and next run meanwhile.
func (t *trial) loses(guard *dedupe.Guard, next Request) {
	t.Helper()
	g := t.newGate()
	t.serveWith(Mount{Route: []*dedupe.Guard{guard}}, func(r run) Answer {
		if r.number == 1 {
			_ = checkLease(r, guard)
			g.wait(r)
		}
		return r.answer()
	})
	first := t.start(t.Context(), t.request("k"))
	handler := g.arrival()
	receive(t, handler.Done(), "the end of the lease")
	if cause := context.Cause(handler); !errors.Is(cause, dedupe.ErrLeaseLost) {
		t.Fatalf("the cause is %v", cause)
	}
	t.proceed(2, next)
	t.wantAnswer(1, false, g.release(first))
}
