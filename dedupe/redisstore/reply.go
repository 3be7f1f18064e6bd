package redisstore

import (
	"fmt"

	"github.com/interlock-go/interlock/dedupe"
)

// reply is what a script returned: stamp, status, and at most one value.
type reply struct {
	script *script
	fields []any
}

// readReply checks that value is the reply to the call with stamp. Replies have been delivered to
// the wrong caller (CVE-2025-29923), and a grant believed that was another's is two holders.
func readReply(script *script, stamp string, value any) (reply, error) {
	fields, ok := value.([]any)
	r := reply{script, fields}
	if !ok || len(fields) < 2 || fields[0] != any(stamp) {
		return reply{}, r.unexpected()
	}
	if r.status() == "unreadable" {
		return reply{}, fmt.Errorf("redisstore: %s: %w", script.name, dedupe.ErrRecordUnreadable)
	}
	return r, nil
}

func (r reply) status() string {
	status, _ := r.fields[1].(string)
	return status
}

// expect returns nil if the status is the one given.
func (r reply) expect(status string) error {
	switch r.status() {
	case status:
		return nil
	case "lost":
		return fmt.Errorf("redisstore: %s: %w", r.script.name, dedupe.ErrLeaseLost)
	default:
		return r.unexpected()
	}
}

func (r reply) number() (int64, error) {
	if len(r.fields) > 2 {
		if number, ok := r.fields[2].(int64); ok {
			return number, nil
		}
	}
	return 0, r.unexpected()
}

// bytes returns the value, nil if there is none.
func (r reply) bytes() []byte {
	if len(r.fields) > 2 {
		if text, ok := r.fields[2].(string); ok {
			return []byte(text)
		}
	}
	return nil
}

func (r reply) unexpected() error {
	return fmt.Errorf("redisstore: %s: %w: %w", r.script.name, dedupe.ErrStoreUnavailable, errReply)
}
