package redisstore

import (
	"context"
	"encoding/binary"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
)

// call is one run of a script.
type call struct {
	script *script
	stamp  string // identifies the call: the token it speaks for, and a number
	words  []any  // the command as it is sent
}

func (s *Store) newCall(script *script, h dedupe.Holder) call {
	var space [160]byte
	both := s.appendKey(space[:0], h.Digest)
	size := len(both)
	both = binary.BigEndian.AppendUint64(append(both, h.Token[:]...), s.calls.count.Add(1))
	text := string(both)
	stamp := text[size:]
	return call{script, stamp, append(make([]any, 0, 11), "evalsha", script.sha1, 1, text[:size], stamp)}
}

// key is the record's.
func (c *call) key() string { return c.words[3].(string) } //nolint:errcheck,forcetypeassert // newCall put it there

// add appends arguments of the script.
func (c *call) add(args ...any) { c.words = append(c.words, args...) }

// run sends the call and reads its reply. A server that does not have the script gets it.
func (c *call) run(ctx context.Context, client Client) (string, error) {
	command := redis.NewStringCmd(ctx, c.words...)
	err := client.Process(ctx, command)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		c.words[0], c.words[1] = "eval", c.script.source
		command = redis.NewStringCmd(ctx, c.words...)
		err = client.Process(ctx, command)
	}
	return command.Val(), err
}
