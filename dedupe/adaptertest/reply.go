package adaptertest

import (
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// Reply is what a client sees.
type Reply struct {
	// Refused is the outcome that the reply names in the adapter's own form: by the type of a
	// problem, or the reason of an ErrorInfo of the adapter's domain. It is [dedupe.Proceed] if it
	// names none.
	Refused dedupe.Outcome

	// Replayed reports the mark of a replay.
	Replayed bool

	// Status is "OK", or what the framework calls the error.
	Status string

	// Body is the text of an answer, and of an error all that it consists of beside the status.
	Body string

	// Kept and Unkept are those of the [Answer].
	Kept, Unkept string

	// RetryAfter is how long the client is told to wait before it asks again, 0 if it is not.
	RetryAfter time.Duration

	// Detail says what is wrong with a request, "" if nothing does.
	Detail string

	// Flaw says what is wrong with the form in which an outcome is told, "" if nothing is: a member
	// that contradicts the outcome, a header that is missing.
	Flaw string
}

// OK is the status of answers that are no errors.
const OK = "OK"

// OutcomeNamed returns the outcome that name gives a name, by [dedupe.Outcome.String] or
// [dedupe.Outcome.Reason], and whether there is one.
func OutcomeNamed(name string, by func(dedupe.Outcome) string) (dedupe.Outcome, bool) {
	for _, o := range dedupe.Outcomes() {
		if by(o) == name {
			return o, true
		}
	}
	return dedupe.Proceed, false
}

// outcome is how the guards decided, as far as the client can tell.
func (r Reply) outcome() dedupe.Outcome {
	if r.Refused == dedupe.Proceed && r.Replayed {
		return dedupe.Replay
	}
	return r.Refused
}
