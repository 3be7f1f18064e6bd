package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// reply is what a script returned after the stamp: a status, and with some a value.
type reply struct {
	script *script
	status string
	value  string
	valued bool
}

// readReply checks that text is the reply to the call with stamp. Replies have been delivered to
// the wrong caller (CVE-2025-29923), and a grant believed that was another's is two holders.
func readReply(script *script, stamp, text string) (reply, error) {
	rest, ours := strings.CutPrefix(text, stamp)
	r := reply{script: script}
	if !ours {
		return r, r.unexpected()
	}
	r.status, r.value, r.valued = strings.Cut(rest, " ")
	if r.status == "unreadable" {
		return r, fmt.Errorf("redisstore: %s: %w", script.name, dedupe.ErrRecordUnreadable)
	}
	return r, nil
}

// expect returns nil if the status is the one given.
func (r reply) expect(status string) error {
	switch r.status {
	case status:
		return nil
	case "lost":
		return fmt.Errorf("redisstore: %s: %w", r.script.name, dedupe.ErrLeaseLost)
	default:
		return r.unexpected()
	}
}

// claimed returns what a claim found.
func (r reply) claimed() (dedupe.Claimed, error) {
	switch r.status {
	case "granted":
		fence, err := r.number()
		return dedupe.Claimed{Status: dedupe.StatusGranted, Fence: uint64(fence)}, err //nolint:gosec // number is not negative
	case "held", "queued":
		rest, err := r.number()
		return dedupe.Claimed{
			Status: dedupe.StatusHeld, Remaining: time.Duration(rest) * time.Microsecond, Queued: r.status == "queued",
		}, err
	case "lapsed":
		rest, err := r.number()
		return dedupe.Claimed{Status: dedupe.StatusLapsed, Remaining: time.Duration(rest) * time.Millisecond}, err
	case "mismatch":
		return dedupe.Claimed{Status: dedupe.StatusMismatch}, nil
	case "completed":
		return dedupe.Claimed{Status: dedupe.StatusCompleted, Answer: r.bytes()}, nil
	default:
		return dedupe.Claimed{}, r.unexpected()
	}
}

func (r reply) number() (int64, error) {
	number, err := strconv.ParseInt(r.value, 10, 64)
	if err != nil || number < 0 {
		return 0, r.unexpected()
	}
	return number, nil
}

// bytes returns the value, nil if there is none.
func (r reply) bytes() []byte {
	if !r.valued {
		return nil
	}
	return []byte(r.value)
}

func (r reply) unexpected() error {
	return fmt.Errorf("redisstore: %s: %w: %w", r.script.name, dedupe.ErrStoreUnavailable, errReply)
}
