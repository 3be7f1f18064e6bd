package rules

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
)

// service is an HTTP handler behind guards. Each run answers with other bytes, so that equal answers
// are a replay.
type service struct {
	handler http.Handler
	runs    atomic.Int32
}

// newService returns a service that does work, if that is not nil, before it answers.
func newService(work func(*http.Request), guards ...*dedupe.Guard) *service {
	s := &service{}
	s.handler = httpmw.New(guards...)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run := s.runs.Add(1)
		if work != nil {
			work(r)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"run":%d,"time":%d}`, run, time.Now().UnixNano())
	}))
	return s
}

// answer is what a client gets.
type answer struct {
	status   int
	body     string
	replayed bool
	problem  string // the kind of a refusal: "store-unavailable"
	took     time.Duration
}

// post sends a request with a key. Unlike the methods below it may be called by any goroutine.
func (s *service) post(t *testing.T, key string) answer {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/withdraw", strings.NewReader(`{"amount":200}`))
	request.Header.Set("Idempotency-Key", key)
	response := httptest.NewRecorder()
	start := time.Now()
	s.handler.ServeHTTP(response, request)
	a := answer{
		status:   response.Code,
		body:     response.Body.String(),
		replayed: response.Header().Get("Idempotent-Replayed") == "true",
		took:     time.Since(start),
	}
	if response.Header().Get("Content-Type") == "application/problem+json" {
		a.problem = problemOf(response.Body.Bytes())
	}
	return a
}

func problemOf(body []byte) string {
	var problem httpmw.Problem
	if err := json.Unmarshal(body, &problem); err != nil {
		return err.Error()
	}
	_, kind, _ := strings.Cut(problem.Type, "#")
	return kind
}

// run sends a request that must run.
func (s *service) run(t *testing.T, key string) answer {
	t.Helper()
	before := s.runs.Load()
	a := s.post(t, key)
	if a.status != http.StatusCreated || a.replayed || s.runs.Load() != before+1 {
		t.Fatalf("the request did not run once: %+v, %d runs", a, s.runs.Load()-before)
	}
	return a
}

// replay sends a request that must get an earlier answer.
func (s *service) replay(t *testing.T, key string, first answer) {
	t.Helper()
	before := s.runs.Load()
	a := s.post(t, key)
	if !a.replayed || a.status != first.status || a.body != first.body {
		t.Fatalf("the repeat got %+v, want a replay of %+v", a, first)
	}
	if s.runs.Load() != before {
		t.Fatal("the repeat ran")
	}
}

// refuse sends a request that must be refused with this status and kind of problem, and must not run.
func (s *service) refuse(t *testing.T, key string, status int, problem string) answer {
	t.Helper()
	before := s.runs.Load()
	a := s.post(t, key)
	if a.status != status || a.problem != problem {
		t.Fatalf("got %+v, want %d %s", a, status, problem)
	}
	if s.runs.Load() != before {
		t.Fatalf("the request ran, and was answered %+v", a)
	}
	return a
}

// repeat sends a request until it is not refused any more.
func (s *service) repeat(t *testing.T, key string) answer {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		a := s.post(t, key)
		switch {
		case a.problem == "":
			return a
		case time.Now().After(deadline):
			t.Fatalf("still refused after %v: %+v", patience, a)
		}
	}
}
