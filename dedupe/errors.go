package dedupe

import (
	"errors"
	"time"
)

// What a guard's refusal matches under errors.Is: one sentinel for each [Outcome].
var (
	// ErrConflict matches both ErrInFlight and ErrLocked.
	ErrConflict = errors.New("dedupe: conflict")

	// ErrInFlight: the first request with this idempotency key is still running.
	ErrInFlight = errors.New("dedupe: request with this key is in flight")
	// ErrLocked: another request holds the resource.
	ErrLocked = errors.New("dedupe: resource is locked")
	// ErrKeyReused: the idempotency key came before with another payload.
	ErrKeyReused = errors.New("dedupe: key was used with another payload")
	// ErrKeyMissing: the request has no key.
	ErrKeyMissing = errors.New("dedupe: key is missing")
	// ErrKeyInvalid: the request's key cannot be used.
	ErrKeyInvalid = errors.New("dedupe: key is invalid")
	// ErrPayloadTooLarge: the payload is over the adapter's limit. Adapters return it from
	// [Request.Payload].
	ErrPayloadTooLarge = errors.New("dedupe: payload is too large")
	// ErrAnswerUnavailable: the request ran, but its answer was not kept or cannot be read.
	ErrAnswerUnavailable = errors.New("dedupe: answer is unavailable")
	// ErrUncertain: an earlier request ended without an answer. See [CrashReport].
	ErrUncertain = errors.New("dedupe: outcome of an earlier request is uncertain")
	// ErrStoreUnavailable: the store could not be asked, or did not answer in time. Stores return
	// it, joined with the cause.
	ErrStoreUnavailable = errors.New("dedupe: store is unavailable")
)

var (
	// ErrLeaseLost is the cause (context.Cause) with which a handler's context is cancelled when
	// its lease is over, and what stores return to an owner that no longer holds a key.
	ErrLeaseLost = errors.New("dedupe: lease is lost")
	// ErrHoldTooLong joins ErrLeaseLost when the lease ended because of [WithMaxHold].
	ErrHoldTooLong = errors.New("dedupe: maximum hold is over")
	// ErrRecordUnreadable: what the store has under a key is not a record, is damaged, or was
	// written by a newer version. Guards then refuse the request whatever their options say.
	ErrRecordUnreadable = errors.New("dedupe: record is unreadable")
	// ErrClosed: the guard is closed. See [Guard.Close].
	ErrClosed = errors.New("dedupe: guard is closed")
)

// lost reports whether a store said that an owner lost its lease. An outage is not that, though its
// cause may be a context that ended because some other lease was lost.
func lost(err error) bool {
	return errors.Is(err, ErrLeaseLost) && !errors.Is(err, ErrStoreUnavailable)
}

// KeyError says why a key cannot be used, in words that may be shown to clients. Neither field may
// contain the key itself.
type KeyError struct {
	// Source is where the key was looked for: "header Idempotency-Key".
	Source string
	// Problem is what is wrong with it: "is longer than 255 bytes".
	Problem string
	// Missing says that there is no key, rather than an unusable one.
	Missing bool
}

// Error returns source and problem.
func (e *KeyError) Error() string { return e.Source + " " + e.Problem }

// Is makes every KeyError match [ErrKeyMissing] or [ErrKeyInvalid].
func (e *KeyError) Is(target error) bool {
	if e.Missing {
		return target == ErrKeyMissing
	}
	return target == ErrKeyInvalid
}

// Refusal is the error with which a guard turns a request away. Its text is for logs: it carries
// the cause, though never a key. Adapters show clients the outcome only.
type Refusal struct { //nolint:errname // the field's word for it
	// Outcome says why.
	Outcome Outcome

	// Guard is the name of the guard that refused: the lock domain of a Serialize, "once" for a
	// Once.
	Guard string

	// RetryAfter is how long to wait before asking again: at least a second where
	// Outcome.Retryable, otherwise 0.
	RetryAfter time.Duration

	// Cause is what led to the refusal, or nil.
	Cause error
}

// Error names guard, outcome and cause.
func (r *Refusal) Error() string {
	text := "dedupe: " + r.Guard + ": " + r.Outcome.Text()
	if r.Cause != nil {
		text += ": " + r.Cause.Error()
	}
	return text
}

// Is reports whether target is the outcome's sentinel, or [ErrConflict] for a conflict.
func (r *Refusal) Is(target error) bool {
	if target == ErrConflict {
		return r.Outcome == InFlight || r.Outcome == Locked
	}
	return target != nil && target == r.Outcome.Err()
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Cause }
