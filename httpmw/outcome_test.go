package httpmw_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// What no client may ever see.
const (
	secretKey     = "key-6b1f-of-the-client"
	secretAddress = "dial tcp 10.9.8.7:6379: connection refused"
)

// fixedStore gives every claim the same result.
type fixedStore struct {
	claimed dedupe.Claimed
	err     error
}

func (s *fixedStore) Claim(context.Context, dedupe.Claim) (dedupe.Claimed, error) {
	return s.claimed, s.err
}

func (s *fixedStore) Extend(context.Context, dedupe.Holder, time.Duration) error { return s.err }

func (s *fixedStore) Complete(context.Context, dedupe.Holder, []byte, time.Duration) error {
	return s.err
}
func (s *fixedStore) Release(context.Context, dedupe.Holder) error { return nil }

func found(status dedupe.Status, remaining time.Duration, answer []byte) dedupe.Store {
	return &fixedStore{claimed: dedupe.Claimed{Status: status, Remaining: remaining, Answer: answer}}
}

func failing(sentinel error) dedupe.Store {
	return &fixedStore{err: fmt.Errorf("%w: %s", sentinel, secretAddress)}
}

func failingKey(err error) dedupe.KeyFunc {
	return func(dedupe.Request) (string, error) { return "", err }
}

// refusals are the ways in which each outcome comes about.
func refusals(t *testing.T) map[string]refusal {
	key := keyfuncs.Header(keyHeader)
	keyError := &dedupe.KeyError{Source: "header X", Problem: "is odd"}
	return map[string]refusal{
		"in flight":           {guard: newOnce(t, found(dedupe.StatusHeld, time.Second, nil)), outcome: dedupe.InFlight, status: 409, retryAfter: "1"},
		"in flight, held":     {guard: newOnce(t, found(dedupe.StatusLapsed, 89500*time.Millisecond, nil), dedupe.WithCrashPolicy(dedupe.CrashHold)), outcome: dedupe.InFlight, status: 409, retryAfter: "90"},
		"locked":              {guard: newSerialize(t, found(dedupe.StatusHeld, time.Second, nil), key), outcome: dedupe.Locked, status: 409, retryAfter: "1"},
		"key reused":          {guard: newOnce(t, found(dedupe.StatusMismatch, 0, nil)), outcome: dedupe.KeyReused, status: 422},
		"key missing":         {guard: newSerialize(t, failing(errors.ErrUnsupported), failingKey(nil)), outcome: dedupe.KeyMissing, status: 400},
		"key invalid":         {guard: newSerialize(t, failing(errors.ErrUnsupported), failingKey(keyError)), outcome: dedupe.KeyInvalid, status: 400, detail: "header X is odd"},
		"key invalid, secret": {guard: newSerialize(t, failing(errors.ErrUnsupported), failingKey(errors.New(secretKey+secretAddress))), outcome: dedupe.KeyInvalid, status: 400},
		"payload too large":   {guard: newOnce(t, failing(errors.ErrUnsupported)), large: true, outcome: dedupe.PayloadTooLarge, status: 413},
		"tombstone":           {guard: newOnce(t, found(dedupe.StatusCompleted, 0, nil)), outcome: dedupe.AnswerUnavailable, status: 409},
		"damaged answer":      {guard: newOnce(t, found(dedupe.StatusCompleted, 0, []byte(secretAddress))), outcome: dedupe.AnswerUnavailable, status: 409},
		"unreadable record":   {guard: newOnce(t, failing(dedupe.ErrRecordUnreadable)), outcome: dedupe.AnswerUnavailable, status: 409},
		"uncertain":           {guard: newOnce(t, found(dedupe.StatusLapsed, time.Hour, nil), dedupe.WithCrashPolicy(dedupe.CrashReport)), outcome: dedupe.Uncertain, status: 409},
		"store unavailable":   {guard: newOnce(t, failing(dedupe.ErrStoreUnavailable)), outcome: dedupe.StoreUnavailable, status: 503, retryAfter: "1"},
	}
}

type refusal struct {
	guard      *dedupe.Guard
	large      bool // send a body over the limit
	outcome    dedupe.Outcome
	status     int
	retryAfter string
	detail     string
}

func (r refusal) request() *http.Request {
	size := 1
	if r.large {
		size = 100
	}
	return newRecorded(secretKey, strings.Repeat("1", size))
}

func TestRefusals(t *testing.T) {
	covered := map[dedupe.Outcome]bool{dedupe.Proceed: true, dedupe.Replay: true}
	for name, test := range refusals(t) {
		covered[test.outcome] = true
		t.Run(name, func(t *testing.T) {
			handler := wrap(t, httpmw.Config{MaxBody: 50}, func(http.ResponseWriter, *http.Request) {
				t.Error("the handler runs")
			}, test.guard)
			got := record(handler, test.request())

			header := http.Header{
				"Content-Type":  {"application/problem+json"},
				"Cache-Control": {"no-store"},
			}
			if test.retryAfter != "" {
				header.Set("Retry-After", test.retryAfter)
			}
			if got.status != test.status || !maps.EqualFunc(got.header, header, equal) {
				t.Errorf("got %d %v, want %d %v", got.status, got.header, test.status, header)
			}
			members := map[string]any{
				"type":      "https://github.com/interlock-go/interlock/blob/main/httpmw/PROBLEMS.md#" + test.outcome.String(),
				"title":     test.outcome.Text(),
				"status":    float64(test.status),
				"retryable": test.retryAfter != "",
			}
			if test.detail != "" {
				members["detail"] = test.detail
			}
			var body map[string]any
			if err := json.Unmarshal([]byte(got.body), &body); err != nil || !maps.Equal(body, members) {
				t.Errorf("got body %s, error %v; want %v", got.body, err, members)
			}
			for _, secret := range []string{secretKey, "6b1f", "10.9.8.7", "dial", "refused"} {
				if strings.Contains(fmt.Sprint(got.header, got.body), secret) {
					t.Errorf("the client sees %q: %v %s", secret, got.header, got.body)
				}
			}
		})
	}
	for _, outcome := range dedupe.Outcomes() {
		if !covered[outcome] {
			t.Errorf("no test has the outcome %v", outcome)
		}
	}
}

func TestRefuseReplacesProblem(t *testing.T) {
	for name, test := range refusals(t) {
		t.Run(name, func(t *testing.T) {
			sent := test.request()
			handler := wrap(t, httpmw.Config{MaxBody: 50, Refuse: func(w http.ResponseWriter, r *http.Request, refusal *dedupe.Refusal) {
				if r != sent || !errors.Is(refusal, test.outcome.Err()) {
					t.Errorf("got %v for %p, want %v for %p", refusal, r, test.outcome, sent)
				}
				w.WriteHeader(http.StatusTeapot)
			}}, nil, test.guard)
			got := record(handler, sent)
			got.check(t, http.StatusTeapot, "", false)
			if len(got.header) > 0 {
				t.Errorf("header %v beside what Refuse wrote", got.header)
			}
		})
	}
}

func TestFailOpenRunsUnrecorded(t *testing.T) {
	guard := newOnce(t, failing(dedupe.ErrStoreUnavailable), dedupe.WithFailOpen())
	handler := wrap(t, httpmw.Config{MaxAnswer: 1}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("done"))
	}, guard)
	record(handler, newRecorded("k", "")).check(t, http.StatusOK, "done", false)
}

func equal(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }
