package httpmw

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// Problem is the body of a refusal: application/problem+json (RFC 9457) with one member of our own.
type Problem struct {
	// Type is the problem's identity, one for each [dedupe.Outcome]. It is also a page that
	// explains it to those who use the API.
	Type string `json:"type"`
	// Title is the same for all problems of a type.
	Title string `json:"title"`
	// Status repeats the status code.
	Status int `json:"status"`
	// Detail says what is wrong with this request, without the key.
	Detail string `json:"detail,omitempty"`
	// Retryable says whether the same request, unchanged, may succeed later.
	Retryable bool `json:"retryable"`
}

// problemTypes is what every problem type begins with; the outcome's name follows.
const problemTypes = "https://github.com/interlock-go/interlock/blob/main/httpmw/PROBLEMS.md#"

// Status returns the status code with which an outcome is told to clients; 0 for those that are
// not refusals.
func Status(o dedupe.Outcome) int {
	switch o {
	case dedupe.InFlight, dedupe.Locked, dedupe.AnswerUnavailable, dedupe.Uncertain:
		return http.StatusConflict
	case dedupe.KeyReused:
		return http.StatusUnprocessableEntity
	case dedupe.KeyMissing, dedupe.KeyInvalid:
		return http.StatusBadRequest
	case dedupe.PayloadTooLarge:
		return http.StatusRequestEntityTooLarge
	case dedupe.StoreUnavailable:
		return http.StatusServiceUnavailable
	case dedupe.Proceed, dedupe.Replay:
		return 0
	default:
		return http.StatusInternalServerError
	}
}

// NewProblem returns what a client is told of a refusal.
func NewProblem(refusal *dedupe.Refusal) Problem {
	p := Problem{
		Type:      problemTypes + refusal.Outcome.String(),
		Title:     refusal.Outcome.Text(),
		Status:    Status(refusal.Outcome),
		Retryable: refusal.Outcome.Retryable(),
	}
	var key *dedupe.KeyError
	if errors.As(refusal.Cause, &key) { // the only cause whose words are meant for clients
		p.Detail = key.Error()
	}
	return p
}

// RetryAfter returns the value of a Retry-After header for d: whole seconds, rounded up, at least 1.
func RetryAfter(d time.Duration) string {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return strconv.FormatInt(max(1, seconds), 10)
}

// WriteProblem answers with the problem of a refusal, Retry-After where the request may be
// repeated, and Cache-Control: no-store.
func WriteProblem(w http.ResponseWriter, _ *http.Request, refusal *dedupe.Refusal) {
	problem := NewProblem(refusal)
	body, err := json.Marshal(problem)
	if err != nil {
		panic(err) // strings, a number and a bool
	}
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	if refusal.RetryAfter > 0 {
		header.Set("Retry-After", RetryAfter(refusal.RetryAfter))
	}
	w.WriteHeader(problem.Status)
	_, _ = w.Write(append(body, '\n')) // the client is gone: there is nobody to tell
}
