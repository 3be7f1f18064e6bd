package adaptertest

import (
	"errors"
	"sync/atomic"

	"github.com/interlock-go/interlock/dedupe"
)

var outageScenarios = []scenario{
	{"RefusedUnderAOnce", func(t *trial) {
		t.unable(errOutage)
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.refuse(dedupe.StoreUnavailable, t.request("k"))
		t.wantRuns(0)
	}},
	{"RefusedUnderASerialize", func(t *trial) {
		t.unable(errOutage)
		t.serve(Mount{Route: []*dedupe.Guard{t.account()}})
		t.refuse(dedupe.StoreUnavailable, t.request("k"))
		t.wantRuns(0)
	}},
	{"OpenUnderAOnce", func(t *trial) {
		t.unable(errOutage)
		t.serve(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithFailOpen())}})
		t.proceed(1, t.request("k"))
		t.proceed(2, t.request("k"))
		t.wantRuns(2)
	}},
	{"OpenUnderASerialize", func(t *trial) {
		t.unable(errOutage)
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.account(dedupe.WithFailOpen())}}, g.first)
		first := g.occupy(t.request("k"))
		t.proceed(2, t.request("k"))
		t.wantAnswer(1, false, g.release(first))
		t.wantRuns(2)
	}},
	{"OpenAroundAResource", func(t *trial) {
		sound := t.account()
		t.unable(errOutage)
		g := t.newGate()
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithFailOpen()), sound}}, g.first)
		first := g.occupy(t.request("k"))
		t.refuse(dedupe.Locked, t.request("k"))
		t.wantAnswer(1, false, g.release(first))
		t.proceed(2, t.request("k"))
		t.wantRuns(2)
	}},
	{"UnreadableRecordOfAKey", func(t *trial) {
		t.unable(dedupe.ErrRecordUnreadable)
		t.serve(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithFailOpen())}})
		t.refuse(dedupe.AnswerUnavailable, t.request("k"))
		t.wantRuns(0)
	}},
	{"UnreadableRecordOfAResource", func(t *trial) {
		t.unable(errors.Join(dedupe.ErrRecordUnreadable, errOutage))
		t.serve(Mount{Route: []*dedupe.Guard{t.account(dedupe.WithFailOpen())}})
		t.refuse(dedupe.StoreUnavailable, t.request("k"))
		t.wantRuns(0)
	}},
	{"AnswerIsSavedLater", func(t *trial) {
		var up atomic.Bool
		t.store = &store{Store: t.store, complete: func(next func() error) error {
			if !up.Load() {
				return errOutage
			}
			return next()
		}}
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.proceed(1, t.request("k")) // the client is not to suffer for it
		t.refuse(dedupe.InFlight, t.request("k"))
		up.Store(true)
		t.wantAnswer(1, true, t.until(t.request("k"), dedupe.InFlight))
		t.wantRuns(1)
	}},
	{"ResourceIsFreedLater", func(t *trial) {
		var up atomic.Bool
		t.store = &store{Store: t.store, release: func(next func() error) error {
			if !up.Load() {
				return errOutage
			}
			return next()
		}}
		t.serve(Mount{Route: []*dedupe.Guard{t.account()}})
		t.proceed(1, t.request("k"))
		t.refuse(dedupe.Locked, t.request("k"))
		up.Store(true)
		t.wantAnswer(2, false, t.until(t.request("k"), dedupe.Locked))
		t.wantRuns(2)
	}},
}

// unable makes the store fail all claims from now on.
func (t *trial) unable(err error) {
	t.store = &store{Store: t.store, claim: func(dedupe.Claim, func(dedupe.Claim) (dedupe.Claimed, error)) (dedupe.Claimed, error) {
		return dedupe.Claimed{}, err
	}}
}
