package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
)

// calls makes calls through a client and comes back in time whatever the client does. By default
// go-redis does not look at a context's deadline once a command is on its way, and even told to it
// does not see a cancellation: a silent Redis would keep a request for seconds. So each call runs on
// a goroutine of its own, which is left behind when its time is up, and ends when the client gives
// up.
type calls struct {
	budget time.Duration
	count  atomic.Uint64
	behind atomic.Int64 // calls left behind that have not ended
}

// maxBehind is how many calls may be left behind before new ones fail without being tried: without
// a bound, an outage would gather a goroutine for each request over the client's whole timeout.
const maxBehind = 1024

var errBehind = fmt.Errorf("%d earlier calls have not come back from the client yet", maxBehind)

// stamp returns what identifies one call of this process: the token it speaks for and a number.
func (c *calls) stamp(t dedupe.Token) string {
	var space [24]byte
	return string(binary.BigEndian.AppendUint64(append(space[:0], t[:]...), c.count.Add(1)))
}

type result struct {
	value any
	err   error
}

// do runs script on key.
func (c *calls) do(ctx context.Context, client Client, script *script, key string, args []any) (any, error) {
	if c.behind.Load() >= maxBehind {
		return nil, errBehind
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.budget, c.late())
	defer cancel()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	done := make(chan result, 1)
	c.behind.Add(1)
	go func() {
		defer c.behind.Add(-1)
		keys := []string{key}
		command := client.EvalSha(ctx, script.sha1, keys, args...)
		if redis.HasErrorPrefix(command.Err(), "NOSCRIPT") {
			command = client.Eval(ctx, script.source, keys, args...)
		}
		value, err := command.Result()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *calls) late() error {
	return fmt.Errorf("no reply within the budget of %v: %w", c.budget, context.DeadlineExceeded)
}
