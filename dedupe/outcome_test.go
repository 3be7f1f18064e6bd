package dedupe_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
)

func TestOutcomeTableIsTotal(t *testing.T) {
	all := dedupe.Outcomes()
	if last := all[len(all)-1]; last != dedupe.StoreUnavailable {
		t.Errorf("the last outcome is %v, want StoreUnavailable", last)
	}
	kebab, upperSnake := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`), regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`)
	used := map[string]dedupe.Outcome{}
	for i, o := range all {
		if int(o) != i {
			t.Errorf("outcome %d is listed as number %d", o, i)
		}
		if !kebab.MatchString(o.String()) {
			t.Errorf("the slug of outcome %d is %q", o, o)
		}
		if !upperSnake.MatchString(o.Reason()) {
			t.Errorf("the reason of %v is %q", o, o.Reason())
		}
		if got := strings.ToLower(strings.ReplaceAll(o.Reason(), "_", "-")); got != o.String() {
			t.Errorf("the reason %s and the slug %s are different names", o.Reason(), o)
		}
		if o.Text() == "" || strings.Contains(o.Text(), "\n") {
			t.Errorf("the text of %v is %q", o, o.Text())
		}
		if runs := o == dedupe.Proceed || o == dedupe.Replay; runs != (o.Err() == nil) {
			t.Errorf("the sentinel of %v is %v", o, o.Err())
		}
		for _, name := range []string{o.String(), o.Reason(), o.Text()} {
			if other, taken := used[name]; taken {
				t.Errorf("%v and %v share %q", other, o, name)
			}
			used[name] = o
		}
	}
}

func TestOutcomeBeyondTheTable(t *testing.T) {
	beyond := dedupe.Outcome(len(dedupe.Outcomes()))
	if beyond.String() != "unknown" || beyond.Reason() != "UNKNOWN" || beyond.Text() != "unknown outcome" ||
		beyond.Err() != nil || beyond.Retryable() {
		t.Errorf("got %v, %s, %q, %v, %t", beyond, beyond.Reason(), beyond.Text(), beyond.Err(), beyond.Retryable())
	}
}

func TestRetryableOutcomes(t *testing.T) {
	retryable := map[dedupe.Outcome]bool{dedupe.InFlight: true, dedupe.Locked: true, dedupe.StoreUnavailable: true}
	for _, o := range dedupe.Outcomes() {
		if o.Retryable() != retryable[o] {
			t.Errorf("%v.Retryable() is %t", o, o.Retryable())
		}
	}
}

// A refusal matches the sentinel of its outcome, ErrConflict if it is one, its cause, and nothing else.
func TestRefusalMatchesItsSentinel(t *testing.T) {
	cause := errors.New("cause")
	for _, of := range dedupe.Outcomes() {
		refusal := &dedupe.Refusal{Outcome: of, Guard: "account", Cause: cause}
		for _, other := range dedupe.Outcomes() {
			if other.Err() == nil {
				continue
			}
			if got, want := errors.Is(refusal, other.Err()), of == other; got != want {
				t.Errorf("errors.Is(%v, %v) is %t", of, other.Err(), got)
			}
		}
		if got, want := errors.Is(refusal, dedupe.ErrConflict), of == dedupe.InFlight || of == dedupe.Locked; got != want {
			t.Errorf("errors.Is(%v, ErrConflict) is %t", of, got)
		}
		mustMatch(t, refusal, cause)
	}
}

func TestRefusalText(t *testing.T) {
	refusal := &dedupe.Refusal{Outcome: dedupe.Locked, Guard: "account"}
	if got, want := refusal.Error(), "dedupe: account: another request holds the resource"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	refusal.Cause = errors.New("gave up")
	if got, want := refusal.Error(), "dedupe: account: another request holds the resource: gave up"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKeyError(t *testing.T) {
	err := &dedupe.KeyError{Source: "header Idempotency-Key", Problem: "is longer than 255 bytes"}
	if got, want := err.Error(), "header Idempotency-Key is longer than 255 bytes"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	mustMatch(t, err, dedupe.ErrKeyInvalid)
	if errors.Is(err, dedupe.ErrKeyMissing) {
		t.Error("a KeyError matches ErrKeyMissing")
	}
}

func TestEventKindString(t *testing.T) {
	used := map[string]bool{}
	for kind := dedupe.EventDecided; kind <= dedupe.EventLeaseLost; kind++ {
		if name := kind.String(); name == "unknown" || used[name] {
			t.Errorf("kind %d is named %q", kind, name)
		}
		used[kind.String()] = true
	}
	if got := dedupe.EventKind(0).String(); got != "unknown" {
		t.Errorf("kind 0 is named %q", got)
	}
}

func TestStatusString(t *testing.T) {
	used := map[string]bool{}
	for status := dedupe.StatusGranted; status <= dedupe.StatusLapsed; status++ {
		if name := status.String(); name == "unknown" || used[name] {
			t.Errorf("status %d is named %q", status, name)
		}
		used[status.String()] = true
	}
	if got := dedupe.Status(0).String(); got != "unknown" {
		t.Errorf("status 0 is named %q", got)
	}
}
