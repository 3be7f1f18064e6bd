package redisstore

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// A reply is believed if it has the stamp and says what a script says. Anything else is an outage or
// an unreadable record, and never a grant.
func FuzzReply(f *testing.F) {
	const stamp = "0123456789abcdef"
	for _, text := range []string{
		"", stamp, stamp + "granted 1", stamp + "granted 18446744073709551615", stamp + "granted -1", stamp + "granted",
		stamp + "granted 1 2", stamp + "held 30000000", stamp + "queued 30000000", stamp + "held 9223372036854775807",
		stamp + "lapsed 3600000", stamp + "lapsed +7", stamp + "mismatch", stamp + "completed", stamp + "completed ",
		stamp + "completed granted 1", stamp + "completed \x00\xff", stamp + "unreadable", stamp + "unreadable x", stamp + "lost",
		stamp + "done", stamp + " granted 1", "fedcba9876543210granted 1", stamp[:15] + "granted 1", "granted 1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := readReply(claimScript, stamp, text)
		rest, ours := strings.CutPrefix(text, stamp)
		if err != nil {
			if unreadable := errors.Is(err, dedupe.ErrRecordUnreadable); unreadable == errors.Is(err, dedupe.ErrStoreUnavailable) {
				t.Fatalf("%q: the error %v is not of one kind", text, err)
			} else if unreadable != (ours && (rest == "unreadable" || strings.HasPrefix(rest, "unreadable "))) {
				t.Fatalf("%q: got %v", text, err)
			}
			return
		}
		if !ours {
			t.Fatalf("%q is believed without the stamp", text)
		}
		checkExpect(t, r, rest)

		claimed, err := r.claimed()
		if err != nil {
			if !errors.Is(err, dedupe.ErrStoreUnavailable) || claimed.Fence != 0 || claimed.Answer != nil {
				t.Fatalf("%q: got %+v, %v", text, claimed, err)
			}
			return
		}
		if want := wantClaimed(t, rest); !reflect.DeepEqual(claimed, want) {
			t.Fatalf("%q: got %+v, want %+v", text, claimed, want)
		}
	})
}

// checkExpect checks that a status is taken for itself only.
func checkExpect(t *testing.T, r reply, rest string) {
	t.Helper()
	word, _, _ := strings.Cut(rest, " ")
	for _, status := range []string{"done", "lost"} {
		err := r.expect(status)
		switch {
		case word == status:
			if err != nil {
				t.Fatalf("%q: %v", rest, err)
			}
		case word == "lost":
			if !errors.Is(err, dedupe.ErrLeaseLost) {
				t.Fatalf("%q: %v", rest, err)
			}
		case !errors.Is(err, dedupe.ErrStoreUnavailable):
			t.Fatalf("%q: %v", rest, err)
		}
	}
}

// wantClaimed says what a reply means that is taken for the reply to a claim.
func wantClaimed(t *testing.T, rest string) dedupe.Claimed {
	t.Helper()
	word, value, valued := strings.Cut(rest, " ")
	switch word {
	case "mismatch":
		return dedupe.Claimed{Status: dedupe.StatusMismatch}
	case "completed":
		if !valued {
			return dedupe.Claimed{Status: dedupe.StatusCompleted}
		}
		return dedupe.Claimed{Status: dedupe.StatusCompleted, Answer: []byte(value)}
	}
	number, err := strconv.ParseInt(value, 10, 64)
	if err != nil || number < 0 {
		t.Fatalf("%q is believed without a number", rest)
	}
	switch word {
	case "granted":
		return dedupe.Claimed{Status: dedupe.StatusGranted, Fence: uint64(number)}
	case "held", "queued":
		return dedupe.Claimed{
			Status: dedupe.StatusHeld, Remaining: time.Duration(number) * time.Microsecond, Queued: word == "queued",
		}
	case "lapsed":
		return dedupe.Claimed{Status: dedupe.StatusLapsed, Remaining: time.Duration(number) * time.Millisecond}
	}
	t.Fatalf("%q is believed", rest)
	return dedupe.Claimed{}
}
