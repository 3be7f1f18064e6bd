package redisstore

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// calls carries out calls through a client and comes back in time whatever the client does.
type calls struct {
	client Client
	budget budget
	prompt bool // the client itself comes back at a context's deadline
	count  atomic.Uint64
	behind atomic.Int64 // calls left behind that have not ended

	pipeliner pipeliner // the client, if it can; otherwise nil
	batch     batch
}

// maxBehind is how many calls may be left behind before new ones fail without being tried: without
// a bound, an outage would gather a goroutine for each request over the client's whole timeout.
const maxBehind = 1024

var errBehind = fmt.Errorf("%d earlier calls have not come back from the client", maxBehind)

// use sets the client. By default go-redis does not look at a context's deadline once a command is
// on its way; a *redis.Client told to (ContextTimeoutEnabled) does, through its whole call. So of a
// stock one a copy is used that shares its connections and was told to. (A copy has no hooks: New
// says so. To call a stock client on a goroutine of its own would keep them, and cost a third more.)
func (c *calls) use(client Client) {
	c.client = client
	defer func() { c.pipeliner, _ = c.client.(pipeliner) }()
	single, ok := client.(*redis.Client)
	if !ok {
		return
	}
	options := single.Options()
	if !options.ContextTimeoutEnabled {
		timeout := c.budget.length
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

// do carries out a call within the budget and returns its reply, once that is known to be this
// call's.
func (c *calls) do(ctx context.Context, call call) (reply, error) {
	if ctx.Err() != nil {
		return reply{}, wrap(call.script, context.Cause(ctx))
	}
	ctx, cancel := c.budget.within(ctx)
	defer cancel()
	text, err := c.run(ctx, call)
	switch {
	case err == nil:
		return readReply(call.script, call.stamp, text)
	case ctx.Err() != nil:
		err = fmt.Errorf("no reply in time, with a budget of %v: %w", c.budget.length, ctx.Err())
	}
	return reply{}, wrap(call.script, err)
}

// apart runs an operation on a goroutine of its own, which is left behind when the time is up and ends
// when the client gives up. Cluster clients need it even when told to honour deadlines: they look up
// slots and commands without.
func (c *calls) apart(ctx context.Context, operation func() error) error {
	if c.behind.Load() >= maxBehind {
		return errBehind
	}
	done := make(chan error, 1)
	c.behind.Add(1)
	go func() {
		defer c.behind.Add(-1)
		done <- operation()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
