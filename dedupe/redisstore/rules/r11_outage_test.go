package rules

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// TestR11OutageIsNotConflict asks for a key that is held, and for one that is not, while Redis is
// there, while it is not in each way, and when it is back.
func TestR11OutageIsNotConflict(t *testing.T) {
	t.Parallel()
	outages := map[string]struct{ begin, end func(r *rig) }{
		"server paused": {func(r *rig) { r.server.Pause() }, func(r *rig) { r.server.Resume() }},
		"network silent": {
			func(r *rig) { r.proxy.BlackHole() },
			func(r *rig) { r.proxy.CutAll(); r.proxy.Resume() },
		},
		"connections refused": {func(r *rig) { r.server.Kill() }, nil},
		"connections cut":     {func(r *rig) { r.proxy.On(redistest.Any, 0, redistest.CutBeforeRequest) }, nil},
		"errors":              {func(r *rig) { r.proxy.On(redistest.Any, 0, redistest.ReplyWith("-ERR for a test\r\n")) }, nil},
	}
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			once, account := newHeld(t, r, onceGuard), newHeld(t, r, serializeGuard)
			for kind, held := range map[string]*held{"in-flight": once, "resource-locked": account} {
				held.others.run(t, "free")
				held.others.refuse(t, "held", http.StatusConflict, kind)
			}
			outage.begin(r)
			for _, held := range []*held{once, account} {
				held.others.refuse(t, "held", http.StatusServiceUnavailable, "store-unavailable")
				held.others.refuse(t, "free-too", http.StatusServiceUnavailable, "store-unavailable")
			}
			if outage.end != nil {
				outage.end(r)
				for kind, held := range map[string]*held{"in-flight": once, "resource-locked": account} {
					held.others.repeat(t, "free-three")
					held.others.refuse(t, "held", http.StatusConflict, kind)
				}
			}
			for _, held := range []*held{once, account} {
				if a := held.finish(t); a.status != http.StatusCreated {
					t.Errorf("the holder got %+v", a)
				}
			}
		})
	}
}

// held is a guard of which a request holds the key "held".
type held struct {
	others *service // in another process, which has to ask
	end    chan struct{}
	answer chan answer
}

func newHeld(t *testing.T, r *rig, guard func(*testing.T, dedupe.Store) *dedupe.Guard) *held {
	t.Helper()
	h := &held{others: newService(nil, guard(t, r.through(t))), end: make(chan struct{}), answer: make(chan answer, 1)}
	running := make(chan struct{})
	holder := newService(func(*http.Request) { close(running); <-h.end }, guard(t, r.store))
	go func() { h.answer <- holder.post(t, "held") }()
	await(t, running, "the handler's start")
	return h
}

func onceGuard(t *testing.T, s dedupe.Store) *dedupe.Guard      { return newOnce(t, s) }
func serializeGuard(t *testing.T, s dedupe.Store) *dedupe.Guard { return newSerialize(t, s) }

// finish has the holder's handler return, and returns what its client gets.
func (h *held) finish(t *testing.T) answer {
	t.Helper()
	close(h.end)
	return await(t, h.answer, "the holder's answer")
}

// TestR11ErrorsInGo is the same for those who use no HTTP.
func TestR11ErrorsInGo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	guard, elsewhere := newSerialize(t, r.store), newSerialize(t, r.through(t))
	never := func(context.Context) error { t.Error("the second one ran"); return nil }
	succeed(t, guard.Run(t.Context(), "key", func(context.Context) error {
		err := elsewhere.Run(t.Context(), "key", never)
		if !errors.Is(err, dedupe.ErrConflict) || !errors.Is(err, dedupe.ErrLocked) || errors.Is(err, dedupe.ErrStoreUnavailable) {
			t.Errorf("a conflict is told as %v", err)
		}
		r.server.Pause()
		defer r.server.Resume()
		err = elsewhere.Run(t.Context(), "key", never)
		if !errors.Is(err, dedupe.ErrStoreUnavailable) || errors.Is(err, dedupe.ErrConflict) {
			t.Errorf("an outage is told as %v", err)
		}
		return nil
	}))
}
