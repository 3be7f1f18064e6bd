package dedupe_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

const secret = "s3cret-key"

// Each way in which a guard can turn a request away. The key must not appear in any refusal.
func TestRefusals(t *testing.T) {
	storeSays := func(status dedupe.Status) *spy { return newSpy().saying(dedupe.Claimed{Status: status}) }
	down := newSpy()
	down.down()
	damaged := newSpy()
	damaged.intercept(func(context.Context, visit) error { return dedupe.ErrRecordUnreadable }, nil)
	broken := errors.New("broken encoding")
	missing := ask("")
	noCaller := ask(secret)
	noCaller.params["caller"] = ""
	invalid := func(err error) *request {
		r := ask(secret)
		r.problems["key"] = err
		return r
	}
	invalidCaller := ask(secret)
	invalidCaller.problems["caller"] = errDown
	tooLarge := ask(secret)
	tooLarge.tooLarge = true
	unreadable := ask(secret)
	unreadable.replay = func([]byte) error { return broken }
	keyError := &dedupe.KeyError{Source: "header Idempotency-Key", Problem: "is empty"}

	for _, test := range []struct {
		name    string
		guard   *dedupe.Guard
		request *request
		want    dedupe.Outcome
		matches []error
	}{
		{"locked", serialize(t, storeSays(dedupe.StatusHeld)), ask(secret), dedupe.Locked, []error{dedupe.ErrLocked, dedupe.ErrConflict}},
		{"in flight", once(t, storeSays(dedupe.StatusHeld)), ask(secret), dedupe.InFlight, []error{dedupe.ErrInFlight, dedupe.ErrConflict}},
		{"key reused", once(t, storeSays(dedupe.StatusMismatch)), ask(secret), dedupe.KeyReused, []error{dedupe.ErrKeyReused}},
		{"no key", serialize(t, newSpy()), missing, dedupe.KeyMissing, []error{dedupe.ErrKeyMissing}},
		{"no key of a Once", once(t, newSpy()), missing, dedupe.KeyMissing, []error{dedupe.ErrKeyMissing}},
		{"no second key", transfers(t, newSpy()), ask(secret), dedupe.KeyMissing, []error{dedupe.ErrKeyMissing}},
		{"no caller", once(t, newSpy()), noCaller, dedupe.KeyMissing, []error{dedupe.ErrKeyMissing}},
		{"a key function says that there is none", serialize(t, newSpy()), invalid(dedupe.ErrKeyMissing), dedupe.KeyMissing, []error{dedupe.ErrKeyMissing}},
		{"invalid key", serialize(t, newSpy()), invalid(keyError), dedupe.KeyInvalid, []error{dedupe.ErrKeyInvalid, keyError}},
		{"a key function fails", once(t, newSpy()), invalid(errDown), dedupe.KeyInvalid, []error{dedupe.ErrKeyInvalid, errDown}},
		{"the caller function fails", once(t, newSpy()), invalidCaller, dedupe.KeyInvalid, []error{dedupe.ErrKeyInvalid, errDown}},
		{"payload too large", once(t, newSpy()), tooLarge, dedupe.PayloadTooLarge, []error{dedupe.ErrPayloadTooLarge}},
		{"body too large for a key", serialize(t, newSpy()), invalid(dedupe.ErrPayloadTooLarge), dedupe.PayloadTooLarge, []error{dedupe.ErrPayloadTooLarge}},
		{"tombstone", once(t, storeSays(dedupe.StatusCompleted)), ask(secret), dedupe.AnswerUnavailable, []error{dedupe.ErrAnswerUnavailable}},
		{
			"unreadable answer",
			once(t, newSpy().saying(dedupe.Claimed{Status: dedupe.StatusCompleted, Answer: []byte{}})),
			unreadable, dedupe.AnswerUnavailable,
			[]error{dedupe.ErrAnswerUnavailable, dedupe.ErrRecordUnreadable, broken},
		},
		{"unreadable record of a Once", once(t, damaged), ask(secret), dedupe.AnswerUnavailable, []error{dedupe.ErrAnswerUnavailable, dedupe.ErrRecordUnreadable}},
		{"unreadable record of a Serialize", serialize(t, damaged), ask(secret), dedupe.StoreUnavailable, []error{dedupe.ErrStoreUnavailable, dedupe.ErrRecordUnreadable}},
		{"uncertain", once(t, storeSays(dedupe.StatusLapsed), dedupe.WithCrashPolicy(dedupe.CrashReport)), ask(secret), dedupe.Uncertain, []error{dedupe.ErrUncertain}},
		{"store down", serialize(t, down), ask(secret), dedupe.StoreUnavailable, []error{dedupe.ErrStoreUnavailable, errDown}},
		{"store down under a Once", once(t, down), ask(secret), dedupe.StoreUnavailable, []error{dedupe.ErrStoreUnavailable, errDown}},
		{"store talks nonsense", once(t, storeSays(77)), ask(secret), dedupe.StoreUnavailable, []error{dedupe.ErrStoreUnavailable}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.request.through(test.guard)
			refusal := refused(t, err, test.want)
			mustMatch(t, err, test.matches...)
			if test.request.ran != 0 {
				t.Error("the handler ran")
			}
			if refusal.Guard != test.guard.Name() {
				t.Errorf("the refusal names the guard %q", refusal.Guard)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the refusal tells the key: %v", err)
			}
			if test.want.Retryable() && refusal.RetryAfter < time.Second {
				t.Errorf("RetryAfter is %v, want at least 1s", refusal.RetryAfter)
			}
			if !test.want.Retryable() && refusal.RetryAfter != 0 {
				t.Errorf("RetryAfter is %v, though it is of no use to try again", refusal.RetryAfter)
			}
		})
	}
}

func TestProceed(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		spy := newSpy()
		first, second := ask("7"), ask("8")
		first.proceeded(t, first.through(guard(t, spy)))
		second.proceeded(t, second.through(guard(t, spy)))
	})
}

func TestDoWithoutGuards(t *testing.T) {
	r := ask("7")
	r.proceeded(t, r.through())
	if r.recorded {
		t.Error("nobody wanted the answer, and it was recorded")
	}
}

func TestSerializeKeepsNothing(t *testing.T) {
	store := memstore.New()
	guard := serialize(t, store)
	for range 2 {
		r := ask("7")
		r.proceeded(t, r.through(guard))
		if r.recorded {
			t.Error("a Serialize had the answer recorded")
		}
	}
	if n := store.Len(); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

func TestOnceReplaysTheFirstAnswerWithinTheRetention(t *testing.T) {
	bubble(t, func(t *testing.T) {
		guard := once(t, memstore.New(), dedupe.WithRetention(time.Hour))
		first := ask("7").answering("first")
		first.proceeded(t, first.through(guard))
		if !first.recorded {
			t.Error("the answer was not recorded")
		}

		time.Sleep(time.Hour - time.Nanosecond)
		repeat := ask("7").answering("second")
		repeat.wasReplayed(t, repeat.through(guard), "first")

		time.Sleep(time.Nanosecond)
		late := ask("7").answering("third")
		late.proceeded(t, late.through(guard))
	})
}

func TestOnceReplaysAnEmptyAnswer(t *testing.T) {
	guard := once(t, memstore.New())
	first, repeat := ask("7"), ask("7")
	first.answer = func() ([]byte, dedupe.Verdict) { return nil, dedupe.VerdictKeep }
	first.proceeded(t, first.through(guard))
	repeat.wasReplayed(t, repeat.through(guard), "")
}

// A key that comes with another payload is refused for that, before anything else is looked at.
func TestMismatchWinsInFlightAndAfter(t *testing.T) {
	guard := once(t, memstore.New(), dedupe.WithWait(time.Minute))
	changed := func() *request {
		r := ask("7")
		r.payload.Body = []byte("700")
		return r
	}
	first := ask("7").doing(func(context.Context) {
		refused(t, changed().through(guard), dedupe.KeyReused)
	})
	first.proceeded(t, first.through(guard))
	refused(t, changed().through(guard), dedupe.KeyReused)
}

func TestCallersAndOperationsDoNotShareKeys(t *testing.T) {
	guard := once(t, memstore.New())
	first, otherCaller, otherRoute := ask("7"), ask("7"), ask("7")
	otherCaller.params["caller"], otherRoute.operation = "bob", "POST /refunds"
	for _, r := range []*request{first, otherCaller, otherRoute} {
		r.proceeded(t, r.through(guard))
	}
}

func TestSafeMethods(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []dedupe.Option
		claims  int
	}{
		{"pass", nil, 0},
		{"are guarded when asked for", []dedupe.Option{dedupe.WithSafeMethods()}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			spy := newSpy()
			r := ask("7")
			r.safe = true
			r.proceeded(t, r.through(serialize(t, spy, test.options...)))
			if got := len(spy.seen(claim)); got != test.claims {
				t.Errorf("the store saw %d claims, want %d", got, test.claims)
			}
		})
	}
}

func TestWithSkip(t *testing.T) {
	spy := newSpy()
	guard := serialize(t, spy, dedupe.WithSkip(func(r dedupe.Request) bool { return r.Operation() == "POST /dry-run" }))
	skipped, guarded := ask("7"), ask("7")
	skipped.operation = "POST /dry-run"
	skipped.proceeded(t, skipped.through(guard))
	spy.sees(t)
	guarded.proceeded(t, guarded.through(guard))
	spy.sees(t, claim, release)
}

func TestWithOptionalKey(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		spy := newSpy()
		optional := guard(t, spy, dedupe.WithOptionalKey())
		without := ask("")
		without.proceeded(t, without.through(optional))
		spy.sees(t)

		unusable := ask("")
		unusable.problems["key"] = errDown
		refused(t, unusable.through(optional), dedupe.KeyInvalid)
	})
}

func TestOptionalKeysOfATransferAreLockedAsFarAsThere(t *testing.T) {
	spy := newSpy()
	r := ask("", "8")
	r.proceeded(t, r.through(transfers(t, spy, dedupe.WithOptionalKey())))
	spy.sees(t, claim, release)
}

// Guards that do not hold leave those inside alone.
func TestInnerGuardsStillHoldWhenTheOuterPasses(t *testing.T) {
	spy := newSpy()
	r := ask("7")
	outer := once(t, newSpy(), dedupe.WithSkip(func(dedupe.Request) bool { return true }))
	r.proceeded(t, r.through(outer, serialize(t, spy)))
	spy.sees(t, claim, release)
}

// Once outside, Serialize inside: a repeat is answered even while the resource is busy.
func TestReplayWhileTheResourceIsBusy(t *testing.T) {
	store := memstore.New()
	onlyOnce, account := once(t, store), serialize(t, store)
	first := ask("7").answering("first")
	first.proceeded(t, first.through(onlyOnce, account))

	busy := ask("7").doing(func(context.Context) {
		repeat := ask("7")
		repeat.wasReplayed(t, repeat.through(onlyOnce, account), "first")
		refused(t, ask("7").through(account), dedupe.Locked)
	})
	busy.proceeded(t, busy.through(account))
}

// A refusal inside is no answer: the repeat may fare better.
func TestInnerRefusalReleasesTheOuterOnce(t *testing.T) {
	store := memstore.New()
	onlyOnce, account := once(t, store), serialize(t, store)
	busy := ask("7").doing(func(context.Context) {
		refused(t, ask("7").through(onlyOnce, account), dedupe.Locked)
	})
	busy.proceeded(t, busy.through(account))

	repeat := ask("7")
	repeat.proceeded(t, repeat.through(onlyOnce, account))
}

// What an inner Once replays is the outer one's answer.
func TestOuterOnceKeepsTheReplayOfTheInner(t *testing.T) {
	store := memstore.New()
	inner := once(t, store, dedupe.WithOperation("inner"))
	outer := once(t, store, dedupe.WithOperation("outer"))
	first := ask("7").answering("first")
	first.proceeded(t, first.through(inner))

	second := ask("7")
	second.answer = func() ([]byte, dedupe.Verdict) { return []byte(second.replayed), dedupe.VerdictKeep }
	second.wasReplayed(t, second.through(outer, inner), "first")

	third := ask("7")
	third.wasReplayed(t, third.through(outer), "first")
}

// A fingerprint of one's own does not make an answer about one account the answer about another.
func TestFingerprintAlwaysHasTheTarget(t *testing.T) {
	guard := once(t, memstore.New(), dedupe.WithFingerprint(func(dedupe.Request) ([]byte, error) { return []byte("same"), nil }))
	at := func(target string) *addressed { return &addressed{ask("7").answering(target), target} }
	first := at("/accounts/A")
	first.proceeded(t, dedupe.Do(first.ctx, []*dedupe.Guard{guard}, first))
	other := at("/accounts/B")
	refused(t, dedupe.Do(other.ctx, []*dedupe.Guard{guard}, other), dedupe.KeyReused)
	repeat := at("/accounts/A")
	repeat.wasReplayed(t, dedupe.Do(repeat.ctx, []*dedupe.Guard{guard}, repeat), "/accounts/A")
}

// addressed is a request whose adapter knows its target without reading the body.
type addressed struct {
	*request
	target string
}

func (a *addressed) Target() string { return a.target }

// An observer that panics costs its request, not the key.
func TestObserverThatPanics(t *testing.T) {
	store := memstore.New()
	eachGuard(t, func(t *testing.T, guard build) {
		g := guard(t, store, dedupe.WithObserver(func(e dedupe.Event) {
			if e.Kind == dedupe.EventDecided {
				panic("observer")
			}
		}))
		func() {
			defer func() {
				if recover() != "observer" {
					t.Error("the panic is gone")
				}
			}()
			_ = ask("9").through(g)
		}()
		if n := store.Len(); n != 0 {
			t.Errorf("%d records are left", n)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
