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

// calls makes calls through a client and comes back in time whatever the client does.
type calls struct {
	client Client
	budget time.Duration
	prompt bool // the client itself comes back at a context's deadline
	count  atomic.Uint64
	behind atomic.Int64 // calls left behind that have not ended
}

// maxBehind is how many calls may be left behind before new ones fail without being tried: without
// a bound, an outage would gather a goroutine for each request over the client's whole timeout.
const maxBehind = 1024

var errBehind = fmt.Errorf("%d earlier calls have not come back from the client", maxBehind)

// use sets the client. By default go-redis does not look at a context's deadline once a command is
// on its way; a *redis.Client told to (ContextTimeoutEnabled) does, through its whole call. So of a
// stock one a copy is used that shares its connections and hooks and was told to.
func (c *calls) use(client Client) {
	c.client = client
	single, ok := client.(*redis.Client)
	if !ok {
		return
	}
	options := single.Options()
	if !options.ContextTimeoutEnabled {
		timeout := c.budget
		if options.ReadTimeout > 0 {
			timeout = min(timeout, options.ReadTimeout)
		}
		told := single.WithTimeout(timeout)
		if told.Options() == options {
			return // not a copy of its own: leave the user's settings alone
		}
		told.Options().ContextTimeoutEnabled = true
		c.client = told
	}
	c.prompt = true
}

// stamp returns what identifies one call of this process: the token it speaks for and a number.
func (c *calls) stamp(t dedupe.Token) string {
	var space [24]byte
	return string(binary.BigEndian.AppendUint64(append(space[:0], t[:]...), c.count.Add(1)))
}

// do runs script on key.
func (c *calls) do(ctx context.Context, script *script, key string, args []any) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, c.budget)
	defer cancel()
	if c.prompt {
		value, err := c.run(ctx, script, key, args)
		if err != nil && ctx.Err() != nil {
			err = c.late(ctx)
		}
		return value, err
	}
	return c.apart(ctx, script, key, args)
}

// apart runs script on a goroutine of its own, which is left behind when the time is up and ends
// when the client gives up. Cluster clients need it even when told to honour deadlines: they look up
// slots and commands without.
func (c *calls) apart(ctx context.Context, script *script, key string, args []any) (string, error) {
	if c.behind.Load() >= maxBehind {
		return "", errBehind
	}
	type result struct {
		value string
		err   error
	}
	done := make(chan result, 1)
	c.behind.Add(1)
	go func() {
		defer c.behind.Add(-1)
		value, err := c.run(ctx, script, key, args)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return "", c.late(ctx)
	}
}

func (c *calls) run(ctx context.Context, script *script, key string, args []any) (string, error) {
	words := append(make([]any, 0, 4+len(args)), "evalsha", script.sha1, 1, key)
	words = append(words, args...)
	command := redis.NewStringCmd(ctx, words...)
	err := c.client.Process(ctx, command)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		words[0], words[1] = "eval", script.source
		command = redis.NewStringCmd(ctx, words...)
		err = c.client.Process(ctx, command)
	}
	return command.Val(), err
}

// late says why a call came to nothing.
func (c *calls) late(ctx context.Context) error {
	if ctx.Err() == context.DeadlineExceeded {
		return fmt.Errorf("no reply within the budget of %v: %w", c.budget, context.Cause(ctx))
	}
	return context.Cause(ctx)
}
