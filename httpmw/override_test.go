package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
)

// wishing answers each run with its number, after it has said what is to become of the answer.
func wishing(t *testing.T, status int, flush bool, wishes ...func(context.Context) error) http.Handler {
	t.Helper()
	var runs atomic.Int32
	return onceOver(t, func(w http.ResponseWriter, r *http.Request) {
		for _, wish := range wishes {
			if err := wish(r.Context()); err != nil {
				t.Error(err)
			}
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "run %d", runs.Add(1))
		if flush {
			_ = http.NewResponseController(w).Flush()
		}
	})
}

func keepFor(retention time.Duration) func(context.Context) error {
	return func(ctx context.Context) error { return dedupe.KeepAnswer(ctx, retention) }
}

func TestHandlerOverridesThePolicy(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		wishes []func(context.Context) error
		kept   bool
	}{
		"a failure is kept":    {http.StatusInternalServerError, []func(context.Context) error{keepFor(0)}, true},
		"a success is not":     {http.StatusCreated, []func(context.Context) error{dedupe.ForgetAnswer}, false},
		"the last word counts": {http.StatusCreated, []func(context.Context) error{dedupe.ForgetAnswer, keepFor(time.Hour)}, true},
		"and the other way":    {http.StatusCreated, []func(context.Context) error{keepFor(0), dedupe.ForgetAnswer}, false},
	} {
		t.Run(name, func(t *testing.T) {
			handler := wishing(t, test.status, false, test.wishes...)
			record(handler, newRecorded("k", "")).check(t, test.status, "run 1", false)
			repeat := record(handler, newRecorded("k", ""))
			if test.kept {
				repeat.check(t, test.status, "run 1", true)
			} else {
				repeat.check(t, test.status, "run 2", false)
			}
		})
	}
}

func TestHandlerKeepsForAnotherTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := wishing(t, http.StatusCreated, false, keepFor(time.Minute))
		record(handler, newRecorded("k", "")).check(t, http.StatusCreated, "run 1", false)
		time.Sleep(59 * time.Second)
		record(handler, newRecorded("k", "")).check(t, http.StatusCreated, "run 1", true)
		time.Sleep(2 * time.Second)
		record(handler, newRecorded("k", "")).check(t, http.StatusCreated, "run 2", false)
	})
}

// A failure that was streamed cannot be kept, but nothing runs again.
func TestHandlerKeepsWhatWasStreamed(t *testing.T) {
	handler := wishing(t, http.StatusInternalServerError, true, keepFor(0))
	record(handler, newRecorded("k", "")).check(t, http.StatusInternalServerError, "run 1", false)
	if got := record(handler, newRecorded("k", "")); got.status != http.StatusConflict {
		t.Errorf("the repeat got %d, want 409", got.status)
	}
}

// The Once may be further out than the innermost guard, and there may be none.
func TestHandlerOverridesFromWithin(t *testing.T) {
	store := memstore.New()
	account, err := dedupe.Serialize(store, "account", func(dedupe.Request) (string, error) { return "7", nil })
	if err != nil {
		t.Fatal(err)
	}
	var wished error
	handler := func(w http.ResponseWriter, r *http.Request) {
		wished = dedupe.KeepAnswer(r.Context(), 0)
		w.WriteHeader(http.StatusBadGateway)
	}
	both := wrap(t, httpmw.Config{}, handler, newOnce(t, store), account)
	record(both, newRecorded("k", ""))
	if got := record(both, newRecorded("k", "")); wished != nil || !got.replayed {
		t.Errorf("got %d, replayed %t: %v", got.status, got.replayed, wished)
	}
	record(wrap(t, httpmw.Config{}, handler, account), newRecorded("k", ""))
	if !errors.Is(wished, dedupe.ErrNotOnce) || !errors.Is(dedupe.ForgetAnswer(t.Context()), dedupe.ErrNotOnce) {
		t.Errorf("without a Once: %v", wished)
	}
	for _, retention := range []time.Duration{-1, time.Millisecond, 91 * 24 * time.Hour} {
		if err := dedupe.KeepAnswer(t.Context(), retention); err == nil || errors.Is(err, dedupe.ErrNotOnce) {
			t.Errorf("a retention of %v: %v", retention, err)
		}
	}
}
