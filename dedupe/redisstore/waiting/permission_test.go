package waiting

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// TestPermissions has users of Redis who may not listen, or not tell. They ask from time to time instead,
// and somebody is told about it, once.
func TestPermissions(t *testing.T) { //nolint:paralleltest // it replaces the default logger
	for name, rules := range map[string][]string{
		"NoChannels":  {"+subscribe", "+publish", "+ping", "resetchannels"},
		"NoSubscribe": {"+publish", "+ping", "allchannels"},
		"NoPublish":   {"+subscribe", "+ping", "allchannels"},
		"NoPing":      {"+subscribe", "+publish", "allchannels"},
		"Nothing":     {"resetchannels"},
	} {
		t.Run(name, func(t *testing.T) {
			var log buffer
			before := slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
			defer slog.SetDefault(before)

			w := siteOf(redistest.Start(t)).watch(t)
			user := []any{
				"ACL", "SETUSER", "user", "on", ">password", "~*",
				"+hello", "+client", "+evalsha", "+eval", "+time", "+exists", "+hmget", "+hset", "+hdel", "+del", "+pexpire", "+pttl",
			}
			for _, rule := range rules {
				user = append(user, rule)
			}
			succeed(t, w.client.Do(t.Context(), user...).Err())
			s := w.site
			s.Username = "user"

			lockKey := request{Kind: lock, Key: "key", Wait: wait}
			one, other := s.member(t, long), s.member(t, long)
			for range 3 {
				holder := one.begin(lockKey)
				last := holder.awaitGrant(t)
				waiting := other.begin(lockKey)
				redistest.Eventually(t, patience, func() bool { return log.count("redisstore") > 0 }, "nobody was told")
				waiting.wantWaiting(t)
				holder.release(t)
				if fence := waiting.awaitGrant(t); fence <= last {
					t.Errorf("fence %d after fence %d", fence, last)
				}
				waiting.release(t)
			}
			w.awaitFree(t)
			if n := log.count("redisstore"); n > 1 {
				t.Errorf("the log has %d lines about it:\n%s", n, log.String())
			}
		})
	}
}

// buffer is a log.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *buffer) count(text string) int { return strings.Count(b.String(), "msg=\""+text) }
