package dedupe

// Outcome is what a guard decided about one request. Adapters translate each outcome into the
// terms of their protocol; the names below are the same in all of them.
type Outcome uint8

const (
	// Proceed: the handler runs.
	Proceed Outcome = iota
	// Replay: an earlier request with the same key was answered, and that answer is given again.
	Replay
	// InFlight: the first request with this idempotency key is still running.
	InFlight
	// Locked: another request holds the resource.
	Locked
	// KeyReused: the idempotency key was used before with another payload.
	KeyReused
	// KeyMissing: the request has no key, and the guard asks for one.
	KeyMissing
	// KeyInvalid: the request has a key that cannot be used.
	KeyInvalid
	// PayloadTooLarge: the body is too large to be compared with a repeat.
	PayloadTooLarge
	// AnswerUnavailable: the request ran, but its answer was not kept or cannot be read.
	AnswerUnavailable
	// Uncertain: an earlier request with this key ended without an answer, and the guard's crash
	// policy is [CrashReport].
	Uncertain
	// StoreUnavailable: the store could not be asked.
	StoreUnavailable
)

// Outcomes lists every outcome, for tables and tests that must cover them all.
func Outcomes() []Outcome {
	all := make([]Outcome, len(outcomes))
	for i := range all {
		all[i] = Outcome(i)
	}
	return all
}

var outcomes = [...]struct {
	slug      string
	reason    string
	text      string
	err       error
	retryable bool
}{
	Proceed:           {slug: "proceed", reason: "PROCEED", text: "the handler runs"},
	Replay:            {slug: "replay", reason: "REPLAY", text: "the first answer is given again"},
	InFlight:          {"in-flight", "IN_FLIGHT", "the first request with this key is still running", ErrInFlight, true},
	Locked:            {"resource-locked", "RESOURCE_LOCKED", "another request holds the resource", ErrLocked, true},
	KeyReused:         {"key-reused", "KEY_REUSED", "the key was used before with another payload", ErrKeyReused, false},
	KeyMissing:        {"key-missing", "KEY_MISSING", "the request has no key", ErrKeyMissing, false},
	KeyInvalid:        {"key-invalid", "KEY_INVALID", "the request's key cannot be used", ErrKeyInvalid, false},
	PayloadTooLarge:   {"payload-too-large", "PAYLOAD_TOO_LARGE", "the payload is over the limit", ErrPayloadTooLarge, false},
	AnswerUnavailable: {"answer-unavailable", "ANSWER_UNAVAILABLE", "the request ran, its answer cannot be given again", ErrAnswerUnavailable, false},
	Uncertain:         {"outcome-uncertain", "OUTCOME_UNCERTAIN", "an earlier request ended without an answer", ErrUncertain, false},
	StoreUnavailable:  {"store-unavailable", "STORE_UNAVAILABLE", "the store is unavailable", ErrStoreUnavailable, true},
}

// String returns the outcome in lower case with dashes, as it ends the type of an HTTP problem:
// "resource-locked".
func (o Outcome) String() string {
	if int(o) >= len(outcomes) {
		return "unknown"
	}
	return outcomes[o].slug
}

// Reason returns the outcome in upper case with underscores, as gRPC's ErrorInfo wants it:
// "RESOURCE_LOCKED".
func (o Outcome) Reason() string {
	if int(o) >= len(outcomes) {
		return "UNKNOWN"
	}
	return outcomes[o].reason
}

// Retryable reports whether the same request, unchanged, may succeed later.
func (o Outcome) Retryable() bool {
	return int(o) < len(outcomes) && outcomes[o].retryable
}

// Text says in a few words what happened, without keys or infrastructure: fit for clients.
func (o Outcome) Text() string {
	if int(o) >= len(outcomes) {
		return "unknown outcome"
	}
	return outcomes[o].text
}

// Err returns the sentinel that a refusal with this outcome matches under errors.Is; nil for
// [Proceed] and [Replay].
func (o Outcome) Err() error {
	if int(o) >= len(outcomes) {
		return nil
	}
	return outcomes[o].err
}
