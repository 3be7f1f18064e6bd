package contender

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

var redislockContender = Contender{
	Name:   "redislock",
	Module: "github.com/bsm/redislock",
	Configuration: "go-redis with stock options; Obtain(ctx, key, 8 s, RetryStrategy: LinearBackoff(100 ms)) with a deadline on ctx, as in its " +
		"examples; Release. It has no renewal; where the hold is long, Refresh every third of the TTL, and the lock counts as lost when that fails",
	Open: func(s Setting) (Lock, error) {
		client := newClient(s)
		lease := s.Lease
		if lease == 0 {
			lease = redislockLease
		}
		return &redislockLock{client, redislock.New(client), lease, s.Watch}, nil
	},
}

const (
	redislockLease    = 8 * time.Second
	redislockBackoff  = 100 * time.Millisecond
	redislockPatience = 10 * time.Minute // without a deadline on the context it waits for one TTL only
)

type redislockLock struct {
	client redis.UniversalClient
	locker *redislock.Client
	lease  time.Duration
	watch  bool
}

func (l *redislockLock) Run(ctx context.Context, key string, work func(context.Context)) error {
	waiting, cancel := context.WithTimeout(ctx, redislockPatience)
	defer cancel()
	lock, err := l.locker.Obtain(waiting, key, l.lease, &redislock.Options{RetryStrategy: redislock.LinearBackoff(redislockBackoff)})
	if err != nil {
		return err
	}
	held, stop := ctx, func() {}
	if l.watch {
		held, stop = watch(ctx, l.lease, func(ctx context.Context) error { return lock.Refresh(ctx, l.lease, nil) })
	}
	work(held)
	stop()
	return lock.Release(context.WithoutCancel(ctx))
}

func (l *redislockLock) Close() error { return l.client.Close() }
