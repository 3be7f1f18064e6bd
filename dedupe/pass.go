package dedupe

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pass takes call through g and the guards inside it.
func (g *Guard) pass(ctx context.Context, inner []*Guard, call Call) error {
	if (!g.safeMethods && call.Safe()) || (g.skip != nil && g.skip(call)) {
		return Do(ctx, inner, call)
	}
	var space [2]string
	keys, err := g.keysOf(call, space[:0])
	if err != nil {
		return g.refuseRequest(call, err)
	}
	if len(keys) == 0 {
		return Do(ctx, inner, call)
	}
	return g.admit(ctx, inner, call, keys)
}

var (
	errNoKey    = errors.New("the request has no key")
	errNoCaller = &KeyError{Source: "caller", Problem: "is not in the request", Missing: true}
	errNoSource = errors.New("the guard was built without a key function; it takes no requests")
)

// keysOf appends the keys of call to keys. Without an optional one it returns fewer, or none.
func (g *Guard) keysOf(call Call, keys []string) ([]string, error) {
	if g.key == nil {
		return nil, &Refusal{Outcome: KeyMissing, Cause: errNoSource}
	}
	for i := -1; i < len(g.also); i++ {
		source := g.key
		if i >= 0 {
			source = g.also[i]
		}
		key, err := source(call)
		switch {
		case err != nil:
			return nil, err
		case key != "":
			keys = append(keys, key)
		case !g.optionalKey:
			cause := errNoKey
			if i >= 0 {
				cause = fmt.Errorf("%w for key function %d of WithAlso", errNoKey, i+1)
			}
			return nil, &Refusal{Outcome: KeyMissing, Cause: cause}
		}
	}
	return keys, nil
}

// admit takes the keys for call and, when it gets them all, runs what is inside.
func (g *Guard) admit(ctx context.Context, inner []*Guard, call Call, keys []string) error {
	l := &Lease{guard: g, outer: leaseOf(ctx), operation: call.Operation()}
	var fingerprint Fingerprint
	if err := l.want(call, keys, &fingerprint); err != nil {
		return g.refuseRequest(call, err)
	}
	if len(l.keys) == 0 { // held further out on this same request
		return Do(ctx, inner, call)
	}
	l.begin(ctx)
	if !g.holders.add(l) {
		l.cancel(ErrClosed)
		return g.refuse(l, StoreUnavailable, ErrClosed)
	}
	claimed, err := l.acquire(fingerprint)
	if g.observe != nil {
		l.mu.Lock()
		l.waited = time.Since(l.arrived)
		l.mu.Unlock()
	}

	switch {
	case err != nil && g.failOpen && l.gaveUp == nil && errors.Is(err, ErrStoreUnavailable) && !errors.Is(err, ErrRecordUnreadable):
		l.emit(Event{Kind: EventDecided, Outcome: StoreUnavailable, Open: true, Err: err})
		return Do(ctx, inner, call)
	case err != nil:
		return g.refuse(l, g.outcomeOf(err), err)
	case claimed.Status == StatusGranted:
		return l.hold(inner, call)
	case claimed.Status == StatusCompleted && claimed.Answer != nil:
		answer, err := l.decode(claimed.Answer)
		if err == nil {
			err = call.Replay(answer)
		}
		if err != nil {
			return g.refuse(l, AnswerUnavailable, errors.Join(ErrRecordUnreadable, err))
		}
		l.emit(Event{Kind: EventDecided, Outcome: Replay})
		return nil
	default:
		return g.refuseStatus(l, claimed)
	}
}

// want works out which records the lease needs: one for each key that is not held further out on
// this request, in the one order in which everybody takes them.
func (l *Lease) want(call Call, keys []string, fingerprint *Fingerprint) error {
	g := l.guard
	caller, operation := "", g.operation
	if g.kind == kindOnce {
		if operation == "" {
			operation = l.operation
		}
		var err error
		if caller, err = g.caller(call); err != nil {
			return err
		}
		if caller == "" {
			return &Refusal{Outcome: KeyMissing, Cause: errNoCaller}
		}
	}
	for _, key := range keys {
		l.add(g.digest(caller, operation, key), key)
	}
	if len(l.keys) == 0 || g.kind == kindSerialize {
		return nil
	}
	if g.fingerprint == nil {
		payload, err := call.Payload()
		if err != nil {
			return err
		}
		*fingerprint = fingerprintOf(payload)
		return nil
	}
	text, err := g.fingerprint(call)
	if err != nil {
		return err
	}
	*fingerprint = Fingerprint(digest(targetOf(call), string(text)))
	return nil
}

// targetOf returns what a request addresses, with its arguments, without reading its body. It counts
// in every fingerprint: an answer about one account must never be given for another.
func targetOf(call Call) string {
	if addressed, ok := call.(interface{ Target() string }); ok {
		return addressed.Target()
	}
	return call.Operation()
}

// refuseRequest refuses a request because of what its key functions or its payload gave.
func (g *Guard) refuseRequest(call Call, err error) error {
	l := &Lease{guard: g, operation: call.Operation()}
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return g.refuse(l, refusal.Outcome, refusal.Cause)
	case errors.Is(err, ErrPayloadTooLarge):
		return g.refuse(l, PayloadTooLarge, err)
	case errors.Is(err, ErrKeyMissing):
		return g.refuse(l, KeyMissing, err)
	default:
		return g.refuse(l, KeyInvalid, err)
	}
}

// refuseStatus refuses a request because of what its claim found.
func (g *Guard) refuseStatus(l *Lease, claimed Claimed) error {
	switch claimed.Status {
	case StatusHeld:
		if errors.Is(l.gaveUp, ErrClosed) {
			return g.refuse(l, StoreUnavailable, l.gaveUp)
		}
		outcome := Locked
		if g.kind == kindOnce {
			outcome = InFlight
		}
		refusal := g.refuse(l, outcome, l.gaveUp)
		refusal.RetryAfter = max(refusal.RetryAfter, min(claimed.Backlog, claimed.Remaining))
		return refusal
	case StatusMismatch:
		return g.refuse(l, KeyReused, nil)
	case StatusCompleted:
		return g.refuse(l, AnswerUnavailable, nil)
	case StatusLapsed:
		if g.crash == CrashReport {
			return g.refuse(l, Uncertain, nil)
		}
		refusal := g.refuse(l, InFlight, nil)
		refusal.RetryAfter = max(refusal.RetryAfter, claimed.Remaining)
		return refusal
	default:
		return g.refuse(l, StoreUnavailable, errors.New("the store returned the status "+claimed.Status.String()))
	}
}

// outcomeOf tells an outage from a record that is there and cannot be read.
func (g *Guard) outcomeOf(err error) Outcome {
	if g.kind == kindOnce && errors.Is(err, ErrRecordUnreadable) {
		return AnswerUnavailable
	}
	return StoreUnavailable
}

// retryAfter is the least that a client is told to wait. Handlers are short beside it, and a lease
// is never much shorter.
const retryAfter = time.Second

func (g *Guard) refuse(l *Lease, outcome Outcome, cause error) *Refusal {
	refusal := &Refusal{Outcome: outcome, Guard: g.name, Cause: cause}
	if outcome.Retryable() {
		refusal.RetryAfter = retryAfter
	}
	l.emit(Event{Kind: EventDecided, Outcome: outcome, Err: cause})
	return refusal
}
