package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

const bankURL = "http://bank/pay"

// checkWaited checks that from since until now it took from least to most.
func checkWaited(t testing.TB, since time.Time, least, most time.Duration) {
	t.Helper()
	if took := time.Since(since); took < least || took > most {
		t.Errorf("it took %v; want %v to %v", took, least, most)
	}
}

// A repeat that comes while the first one runs waits for it, and gets its answer.
func TestWaitForTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		seen := &arrivals{next: onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
			runs.Add(1)
			time.Sleep(2500 * time.Millisecond)
			fmt.Fprint(w, "done")
		})}
		client := newClient(t, httpmw.ClientConfig{}, pipes(t, seen))
		ctx := dedupe.ContextWithKey(t.Context(), "k")
		start := time.Now()
		first := make(chan reply)
		go func() { first <- do(client, newCall(ctx, t, bankURL)) }()
		synctest.Wait()

		do(client, newCall(ctx, t, bankURL)).check(t, http.StatusOK, "done", true)
		checkWaited(t, start, 2500*time.Millisecond, 4500*time.Millisecond) // until a wait ends after the first one has
		got := <-first
		got.check(t, http.StatusOK, "done", false)
		if runs.Load() != 1 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

func TestWaitForAResource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		handler := wrap(t, httpmw.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(2500 * time.Millisecond)
			fmt.Fprint(w, "done")
		}, newOnce(t, store), newSerialize(t, store, keyfuncs.Const("7")))
		client := newClient(t, httpmw.ClientConfig{}, pipes(t, handler))
		start := time.Now()
		first := make(chan reply)
		go func() { first <- do(client, newCall(t.Context(), t, bankURL)) }()
		synctest.Wait()

		do(client, newCall(t.Context(), t, bankURL)).check(t, http.StatusOK, "done", false)
		checkWaited(t, start, 5*time.Second, 7*time.Second)
		got := <-first
		got.check(t, http.StatusOK, "done", false)
	})
}

// flakyStore fails some claims, then works.
type flakyStore struct {
	dedupe.Store

	failures atomic.Int64
}

func (s *flakyStore) Claim(ctx context.Context, c dedupe.Claim) (dedupe.Claimed, error) {
	if s.failures.Add(-1) >= 0 {
		return dedupe.Claimed{}, dedupe.ErrStoreUnavailable
	}
	return s.Store.Claim(ctx, c)
}

func TestWaitForTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &flakyStore{Store: memstore.New()}
		store.failures.Store(3)
		seen := &arrivals{next: wrap(t, httpmw.Config{}, echo, newOnce(t, store))}
		client := newClient(t, httpmw.ClientConfig{}, pipes(t, seen))
		start := time.Now()
		do(client, newCall(t.Context(), t, bankURL)).check(t, http.StatusOK, `{"to":7}`, false)
		checkWaited(t, start, 3*time.Second, 4500*time.Millisecond)
		seen.oneKey(t, 4)
		for _, one := range seen.all(t, 4) {
			if one.body != `{"to":7}` {
				t.Errorf("the body became %q", one.body)
			}
		}
	})
}

// The key was used for another request: that does not change.
func TestMismatchIsFinal(t *testing.T) {
	t.Parallel()
	seen := &arrivals{next: onceOver(t, echo)}
	server := http1(t, seen)
	client := newClient(t, httpmw.ClientConfig{}, server.Client().Transport)
	ctx := dedupe.ContextWithKey(t.Context(), "k")
	do(client, newCall(ctx, t, server.URL+"/pay")).check(t, http.StatusOK, `{"to":7}`, false)
	got := do(client, newCall(ctx, t, server.URL+"/pay?other"))
	got.checkRefused(t, dedupe.KeyReused)
	seen.oneKey(t, 2)
}

// Every outcome, as the middleware tells it.
func TestWhichRefusalsAreRepeated(t *testing.T) {
	t.Parallel()
	for _, outcome := range dedupe.Outcomes() {
		if outcome.Err() == nil {
			continue
		}
		t.Run(outcome.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				again := outcome == dedupe.InFlight || outcome == dedupe.Locked || outcome == dedupe.StoreUnavailable
				seen := &arrivals{next: inTurn(refuse(outcome, time.Second), done)}
				got := do(newClient(t, httpmw.ClientConfig{}, pipes(t, seen)), newCall(t.Context(), t, bankURL))
				if again {
					got.check(t, http.StatusOK, "done", false)
					seen.oneKey(t, 2)
				} else {
					got.checkRefused(t, outcome)
					seen.all(t, 1)
				}
			})
		})
	}
}

// answerWith answers as no guard would.
func answerWith(status int, contentType, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Retry-After", "1")
		for _, name := range header {
			w.Header().Set(name, "true")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const inFlight = `{"type":"https://github.com/interlock-go/interlock/blob/main/httpmw/PROBLEMS.md#in-flight","retryable":true}`

// Answers that look like a refusal and are none are the caller's, as they came.
func TestOtherAnswersAreFinal(t *testing.T) {
	t.Parallel()
	const problem = "application/problem+json"
	large := inFlight[:len(inFlight)-1] + `,"x":"` + strings.Repeat("x", 100_000) + `"}`
	for name, test := range map[string]struct {
		status            int
		contentType, body string
		header            []string
	}{
		"another 409":             {http.StatusConflict, "text/plain", "no", nil},
		"another 503":             {http.StatusServiceUnavailable, problem, `{"type":"about:blank","retryable":true}`, nil},
		"another's problem":       {http.StatusConflict, problem, `{"type":"https://example.com/#in-flight","retryable":true}`, nil},
		"another's type of media": {http.StatusConflict, "application/json", inFlight, nil},
		"no type of media":        {http.StatusConflict, ";", inFlight, nil},
		"not retryable":           {http.StatusConflict, problem, strings.Replace(inFlight, "true", "false", 1), nil},
		"not JSON":                {http.StatusConflict, problem, inFlight + "}", nil},
		"empty":                   {http.StatusConflict, problem, "", nil},
		"a success":               {http.StatusOK, problem, inFlight, nil},
		"a replay":                {http.StatusConflict, problem, inFlight, []string{"Idempotent-Replayed"}},
		"large":                   {http.StatusConflict, problem, large, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &arrivals{next: inTurn(answerWith(test.status, test.contentType, test.body, test.header...), done)}
			server := http1(t, seen)
			got := do(newClient(t, httpmw.ClientConfig{}, server.Client().Transport), newCall(t.Context(), t, server.URL))
			got.check(t, test.status, test.body, test.header != nil)
			seen.all(t, 1)
		})
	}
}

// As above, but it is one.
func TestProblemsParametersDoNotMatter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &arrivals{next: inTurn(answerWith(http.StatusTeapot, "Application/Problem+JSON; charset=utf-8", inFlight), done)}
		do(newClient(t, httpmw.ClientConfig{}, pipes(t, seen)), newCall(t.Context(), t, bankURL)).check(t, http.StatusOK, "done", false)
	})
}

func TestHowLongIsWaited(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		retryAfter  string // %date is in 20 s
		least, most time.Duration
	}{
		"seconds":    {"30", 30 * time.Second, 37500 * time.Millisecond},
		"at most":    {"60", 60 * time.Second, 60 * time.Second},
		"none":       {"", time.Second, 1250 * time.Millisecond},
		"nonsense":   {"soon", time.Second, 1250 * time.Millisecond},
		"now":        {"0", time.Second, 1250 * time.Millisecond},
		"date":       {"%date", 19 * time.Second, 25 * time.Second},
		"past":       {"Thu, 01 Jan 1970 00:00:00 GMT", time.Second, 1250 * time.Millisecond},
		"too long":   {"61", 0, 0},
		"very long":  {"99999999999999999999999", 0, 0},
		"far future": {"Fri, 31 Dec 9999 23:59:59 GMT", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				seen := &arrivals{next: inTurn(func(w http.ResponseWriter, _ *http.Request) {
					date := time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)
					w.Header().Set("Retry-After", strings.Replace(test.retryAfter, "%date", date, 1))
					w.Header().Set("Content-Type", "application/problem+json")
					w.WriteHeader(http.StatusConflict)
					_, _ = io.WriteString(w, inFlight)
				}, done)}
				client := newClient(t, httpmw.ClientConfig{}, pipes(t, seen))
				start := time.Now()
				got := do(client, newCall(t.Context(), t, bankURL))
				checkWaited(t, start, test.least, test.most)
				if test.most == 0 {
					got.check(t, http.StatusConflict, inFlight, false)
				} else {
					got.check(t, http.StatusOK, "done", false)
				}
			})
		})
	}
}

// Refused again and again, and those refused together at other times.
func TestWaitsGrowAndAttemptsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &arrivals{next: refuse(dedupe.StoreUnavailable, 4*time.Second)}
		base := pipes(t, seen)
		client := newClient(t, httpmw.ClientConfig{}, base)
		do(client, newCall(t.Context(), t, bankURL)).checkRefused(t, dedupe.StoreUnavailable)
		seen.oneKey(t, 10)
		all := seen.all(t, 10)
		uneven := false
		for i := 1; i < len(all); i++ {
			waited := all[i].at.Sub(all[i-1].at)
			if waited < 4*time.Second || waited > time.Duration(4+i)*time.Second {
				t.Errorf("wait %d took %v", i, waited)
			}
			uneven = uneven || waited != 4*time.Second
		}
		if !uneven {
			t.Error("all waited the same")
		}

		seen.seen = nil
		client = newClient(t, httpmw.ClientConfig{MaxAttempts: 1}, base)
		do(client, newCall(t.Context(), t, bankURL)).checkRefused(t, dedupe.StoreUnavailable)
		seen.all(t, 1)
	})
}

// A wait that the deadline would end is not begun: the caller learns why there is no answer.
func TestDeadlineBeforeTheWaitIsOver(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(context.Context, *http.Client) (context.Context, context.CancelFunc){
		"of the context": func(ctx context.Context, _ *http.Client) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 4001*time.Millisecond)
		},
		"of the client": func(ctx context.Context, client *http.Client) (context.Context, context.CancelFunc) {
			client.Timeout = 4001 * time.Millisecond
			return ctx, func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				seen := &arrivals{next: refuse(dedupe.InFlight, 4*time.Second)}
				client := newClient(t, httpmw.ClientConfig{}, pipes(t, seen))
				ctx, cancel := start(t.Context(), client)
				defer cancel()
				begin := time.Now()
				do(client, newCall(ctx, t, bankURL)).checkRefused(t, dedupe.InFlight)
				// One wait fits, if it leaves some of the last millisecond for an answer.
				checkWaited(t, begin, 4*time.Second, 4001*time.Millisecond-1)
				seen.all(t, 2)
			})
		})
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &arrivals{next: refuse(dedupe.InFlight, 40*time.Second)}
		client := newClient(t, httpmw.ClientConfig{}, pipes(t, seen))
		cause := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		time.AfterFunc(3*time.Second, func() { cancel(cause) })
		if got := do(client, newCall(ctx, t, bankURL)); !errors.Is(got.err, cause) {
			t.Errorf("got %+v", got)
		}
		checkWaited(t, start, 3*time.Second, 3*time.Second)
		seen.all(t, 1)
	})
}
