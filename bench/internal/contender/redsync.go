package contender

import (
	"context"
	"errors"
	"math"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

var redsyncContender = Contender{
	Name:   "redsync",
	Module: "github.com/go-redsync/redsync/v4",
	Configuration: "go-redis with stock options, one pool; NewMutex with its defaults (expiry 8 s, asks again after 50 to 250 ms) but for WithTries, " +
		"which is unlimited so that nobody gives up. It has no renewal; where the hold is long, Extend every third of the expiry, and the lock counts as lost when that fails",
	Open: func(s Setting) (Lock, error) {
		client := newClient(s)
		l := &redsyncLock{client: client, sync: redsync.New(goredis.NewPool(client)), setting: s}
		l.options = []redsync.Option{redsync.WithTries(math.MaxInt32)}
		if s.Lease > 0 {
			l.options = append(l.options, redsync.WithExpiry(s.Lease))
		}
		return l, nil
	},
}

type redsyncLock struct {
	client  redis.UniversalClient
	sync    *redsync.Redsync
	options []redsync.Option
	setting Setting
}

func (l *redsyncLock) Run(ctx context.Context, key string, work func(context.Context)) error {
	mutex := l.sync.NewMutex(key, l.options...)
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	held, stop := ctx, func() {}
	if l.setting.Watch {
		held, stop = watch(ctx, l.setting.Lease, func(ctx context.Context) error {
			return refused(mutex.ExtendContext(ctx))
		})
	}
	work(held)
	stop()
	return refused(mutex.UnlockContext(context.WithoutCancel(ctx)))
}

var errRefused = errors.New("contender: redsync: not held")

func refused(ok bool, err error) error {
	if err == nil && !ok {
		return errRefused
	}
	return err
}

func (l *redsyncLock) Close() error { return l.client.Close() }
