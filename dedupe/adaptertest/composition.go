package adaptertest

import (
	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

var compositionScenarios = []scenario{
	{"OnceInGroupAndRoute", func(t *trial) {
		once := t.once()
		t.serve(Mount{Group: []*dedupe.Guard{once}, Route: []*dedupe.Guard{once}})
		t.proceed(1, t.request("k"))
		t.replay(1, t.request("k"))
		t.refuse(dedupe.KeyReused, t.otherText("k"))
		t.wantRuns(1)
	}},
	{"SerializeInGroupAndRoute", func(t *trial) {
		account := t.account()
		g := t.newGate()
		t.serveWith(Mount{Group: []*dedupe.Guard{account}, Route: []*dedupe.Guard{account}}, g.first)
		first := g.occupy(t.request("k"))
		t.refuse(dedupe.Locked, t.request("k"))
		t.wantAnswer(1, false, g.release(first))
		t.proceed(2, t.request("k"))
		t.wantRuns(2)
	}},
	{"OneDomainInGroupAndRoute", func(t *trial) {
		t.serve(Mount{Group: []*dedupe.Guard{t.account()}, Route: []*dedupe.Guard{t.account()}})
		t.proceed(1, t.request("k"))
		t.proceed(2, t.request("k"))
		t.wantRuns(2)
	}},
	{"ReplayWhileTheResourceIsLocked", func(t *trial) {
		t.whileLocked(Mount{Route: []*dedupe.Guard{t.once(), t.account()}}, func() {
			t.replay(1, t.request("k"))
		})
		t.wantRuns(2)
	}},
	{"ReplayWhileTheResourceOfTheRouteIsLocked", func(t *trial) {
		t.whileLocked(Mount{Group: []*dedupe.Guard{t.once()}, Route: []*dedupe.Guard{t.account()}}, func() {
			t.replay(1, t.request("k"))
		})
		t.wantRuns(2)
	}},
	{"NoReplayInsideOfALockedResource", func(t *trial) {
		t.whileLocked(Mount{Route: []*dedupe.Guard{t.account(), t.once()}}, func() {
			t.refuse(dedupe.Locked, t.request("k"))
		})
		t.replay(1, t.request("k"))
		t.wantRuns(2)
	}},
	{"InnerRefusalReleasesTheKey", func(t *trial) {
		t.refusedInside(Mount{Route: []*dedupe.Guard{t.once(), t.account()}})
	}},
	{"InnerRefusalOfTheRouteReleasesTheKey", func(t *trial) {
		t.refusedInside(Mount{Group: []*dedupe.Guard{t.once()}, Route: []*dedupe.Guard{t.account()}})
	}},
	{"InnerRefusalIsNoVerdict", func(t *trial) {
		// KeyMissing would be kept if it were the handler's.
		other := t.guarded(dedupe.Serialize(t.store, "account", keyfuncs.Header(CallerHeader)))
		t.serve(Mount{Group: []*dedupe.Guard{t.guarded(dedupe.Once(t.store, keyfuncs.Anyone, keyfuncs.Header(KeyHeader)))}, Route: []*dedupe.Guard{other}})
		t.refuse(dedupe.KeyMissing, t.request("k"))
		t.proceed(1, t.of("alice"))
		t.replay(1, t.request("k"))
		t.wantRuns(1)
	}},
	{"OuterOnceKeepsAnInnerReplay", func(t *trial) {
		t.replaysInside(Mount{Route: []*dedupe.Guard{t.once(), t.byPayload()}})
	}},
	{"OuterOnceOfTheGroupKeepsAnInnerReplay", func(t *trial) {
		t.replaysInside(Mount{Group: []*dedupe.Guard{t.once()}, Route: []*dedupe.Guard{t.byPayload()}})
	}},
}

// byPayload returns a Once for which the payload is the key.
func (t *trial) byPayload() *dedupe.Guard {
	t.Helper()
	return t.guarded(dedupe.Once(t.store, keyfuncs.Anyone, keyfuncs.PayloadHash))
}

// replaysInside checks that a Once around byPayload keeps what that one replays, the headers included.
func (t *trial) replaysInside(m Mount) {
	t.Helper()
	t.serveWith(m, func(r run) Answer { return Answer{Text: textOf(r.number), Kept: "/receipts/1"} })
	t.proceed(1, t.request("k"))
	for _, by := range []string{"payload", "key"} {
		if got := t.replay(1, t.request("l")); got.Kept != "/receipts/1" {
			t.Fatalf("the replay by its %s is %+v", by, got)
		}
	}
	t.refuse(dedupe.KeyReused, t.otherText("l"))
	t.wantRuns(1)
}

// whileLocked has one request answered, and calls act while another one holds the resource.
func (t *trial) whileLocked(m Mount, act func()) {
	t.Helper()
	g := t.newGate()
	t.serveWith(m, func(r run) Answer {
		if r.number == 2 {
			g.wait(r)
		}
		return r.answer()
	})
	t.proceed(1, t.request("k"))
	second := g.occupy(t.request("l"))
	act()
	t.wantAnswer(2, false, g.release(second))
}

// refusedInside checks that a request that was refused by an inner guard runs when it is repeated.
func (t *trial) refusedInside(m Mount) {
	t.Helper()
	g := t.newGate()
	t.serveWith(m, g.first)
	first := g.occupy(t.request("k"))
	t.refuse(dedupe.Locked, t.request("l"))
	t.refuse(dedupe.Locked, t.request("l"))
	t.wantAnswer(1, false, g.release(first))
	t.proceed(2, t.request("l"))
	t.replay(2, t.request("l"))
	t.wantRuns(2)
}
