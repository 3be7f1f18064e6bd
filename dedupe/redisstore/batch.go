package redisstore

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// batch has calls share round trips when there are many at once. A few go out each on a connection of
// its own, at once. What comes on top waits for the next pipeline, of which a few are under way at a
// time, each with all that came meanwhile: the more there is to do, the more each round trip does.
type batch struct {
	mu        sync.Mutex
	alone     int // calls under way on their own
	pipelines int
	queue     []*queued
}

// These were found by measurement: fewer calls alone cost latency where there is room, more of them
// contend for connections; one pipeline leaves the server idle while the client works, more than a few
// make them short.
const (
	maxAlone     = 12
	maxPipelines = 3
	maxPipeline  = 128 // calls
)

// queued is a call that waits for a pipeline.
type queued struct {
	command *redis.StringCmd
	left    bool // the caller has gone before it was sent; guarded by batch.mu
	text    string
	err     error
	done    chan struct{} // told once, when text and err are there
}

var queuedPool = sync.Pool{New: func() any { return &queued{done: make(chan struct{}, 1)} }}

// pipeliner is a client that can send several commands in one round trip.
type pipeliner interface {
	Pipeline() redis.Pipeliner
}

// run carries out a call, alone or with others. It returns when ctx is done if it is with others.
func (c *calls) run(ctx context.Context, call call) (string, error) {
	b := &c.batch
	b.mu.Lock()
	if c.pipeliner == nil || b.alone < maxAlone && len(b.queue) == 0 {
		b.alone++
		b.mu.Unlock()
		text, err := c.runAlone(ctx, call)
		b.mu.Lock()
		b.alone--
		b.mu.Unlock()
		return text, err
	}
	q := queuedPool.Get().(*queued) //nolint:errcheck,forcetypeassert // nothing else is put there
	q.command = redis.NewStringCmd(ctx, call.words...)
	b.queue = append(b.queue, q)
	if b.pipelines < maxPipelines {
		b.pipelines++
		go c.pipe()
	}
	b.mu.Unlock()
	select {
	case <-q.done:
	case <-ctx.Done(): // q is its pipeline's now, if it has one
		b.mu.Lock()
		q.left = true
		b.mu.Unlock()
		return "", ctx.Err()
	}
	text, err := q.text, q.err
	queuedPool.Put(q)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		return c.runAlone(ctx, call)
	}
	return text, err
}

// runAlone carries out a call on a connection of its own.
func (c *calls) runAlone(ctx context.Context, call call) (string, error) {
	if c.prompt {
		return call.run(ctx, c.client)
	}
	var text string
	err := c.apart(ctx, func() (err error) {
		text, err = call.run(ctx, c.client)
		return err
	})
	if err != nil {
		return "", err // text may be written to yet
	}
	return text, nil
}

// pipe sends pipelines until there is nothing to send.
func (c *calls) pipe() {
	b := &c.batch
	for {
		b.mu.Lock()
		n := min(len(b.queue), maxPipeline)
		if n == 0 {
			b.pipelines--
			b.mu.Unlock()
			return
		}
		together := make([]*queued, 0, n)
		for _, q := range b.queue[:n] {
			if !q.left { // a claim that nobody waits for any more would hold its key for a whole lease
				together = append(together, q)
			}
		}
		clear(b.queue[:n])
		b.queue = append(b.queue[:0], b.queue[n:]...)
		b.mu.Unlock()
		if len(together) > 0 {
			c.send(together)
		}
	}
}

// send carries out calls in one round trip.
func (c *calls) send(together []*queued) {
	ctx, cancel := c.budget.within(context.Background())
	defer cancel()
	pipeline := c.pipeliner.Pipeline()
	for _, q := range together {
		_ = pipeline.Process(ctx, q.command) // it only queues
	}
	exec := func() error {
		_, _ = pipeline.Exec(ctx) // each command has its own error
		return nil
	}
	var left error // why it was left behind, so that the commands may be written to yet
	if c.prompt {
		_ = exec()
	} else {
		left = c.apart(ctx, exec)
	}
	for _, q := range together {
		if q.text, q.err = "", left; left == nil {
			q.text, q.err = q.command.Result()
		}
		q.done <- struct{}{}
	}
}
