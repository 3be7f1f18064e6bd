package httpmw

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
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

// String returns the title, and the detail if there is one.
func (p Problem) String() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
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
	setRefusalHeader(w.Header(), refusal)
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(problem.Status)
	_, _ = w.Write(append(body, '\n')) // the client is gone: there is nobody to tell
}

const problemType = "application/problem+json"

// setRefusalHeader sets the headers that go with a refusal in whatever form it is told.
func setRefusalHeader(header http.Header, refusal *dedupe.Refusal) {
	header.Set("Cache-Control", "no-store")
	if refusal.RetryAfter > 0 {
		header.Set("Retry-After", RetryAfter(refusal.RetryAfter))
	}
}

// ProblemBody is the problem of a refusal for a framework that renders errors itself, as JSON, and
// has no place for the content type.
type ProblemBody struct {
	Problem

	marshalled atomic.Bool
}

// NewProblemBody sets the headers that go with a refusal, whoever renders it: Retry-After where the
// request may be repeated, and Cache-Control: no-store.
func NewProblemBody(header http.Header, refusal *dedupe.Refusal) *ProblemBody {
	setRefusalHeader(header, refusal)
	return &ProblemBody{Problem: NewProblem(refusal)}
}

// MarshalJSON implements json.Marshaler.
func (b *ProblemBody) MarshalJSON() ([]byte, error) {
	b.marshalled.Store(true)
	return json.Marshal(b.Problem)
}

// SetContentType sets the content type if the problem has been marshalled. Call it before the header
// is written: only then is it known whether it is the problem that is sent, and not what the
// application makes of it.
func (b *ProblemBody) SetContentType(header http.Header) {
	if b.marshalled.Load() {
		header.Set("Content-Type", problemType)
	}
}
