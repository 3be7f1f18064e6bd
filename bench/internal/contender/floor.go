package contender

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

var floor = Contender{
	Name:   FloorName,
	Module: "github.com/redis/go-redis/v9",
	Configuration: "plain go-redis, stock options: SET key token NX PX 8000, then a script that compares and deletes. " +
		"Asks again every 5 ms while the key is held. No renewal: it believes in its lock until its own TTL, from before SET was sent, is over",
	Open: func(s Setting) (Lock, error) { return &floorLock{NewFloor(newClient(s), s.Lease), s.Watch}, nil },
}

const (
	floorLease = 8 * time.Second
	floorPause = 5 * time.Millisecond
)

// Floor is the least that a lock in Redis costs: two round trips.
type Floor struct {
	client redis.UniversalClient
	lease  time.Duration
}

// NewFloor returns a floor over client. A lease of 0 is the default.
func NewFloor(client redis.UniversalClient, lease time.Duration) Floor {
	if lease == 0 {
		lease = floorLease
	}
	return Floor{client, lease}
}

var compareAndDelete = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

// ErrNotHeld is returned by a release that finds another, or nobody, holding the key.
var ErrNotHeld = errors.New("contender: floor: not held at release")

// TryAcquire takes key if it is free.
func (f Floor) TryAcquire(ctx context.Context, key string) (token string, ok bool, err error) {
	token = rand.Text()
	switch err = f.client.SetArgs(ctx, key, token, redis.SetArgs{Mode: "NX", TTL: f.lease}).Err(); {
	case errors.Is(err, redis.Nil):
		return "", false, nil
	case err != nil:
		return "", false, err
	default:
		return token, true, nil
	}
}

// Release lets go of key.
func (f Floor) Release(ctx context.Context, key, token string) error {
	deleted, err := compareAndDelete.Run(ctx, f.client, []string{key}, token).Int()
	if err == nil && deleted != 1 {
		err = ErrNotHeld
	}
	return err
}

type floorLock struct {
	Floor

	watch bool
}

func (l *floorLock) Run(ctx context.Context, key string, work func(context.Context)) error {
	for {
		sent := time.Now()
		token, ok, err := l.TryAcquire(ctx, key)
		if err != nil {
			return err
		}
		if ok {
			held, cancel := ctx, func() {}
			if l.watch {
				held, cancel = context.WithDeadline(ctx, sent.Add(l.lease))
			}
			work(held)
			cancel()
			return l.Release(context.WithoutCancel(ctx), key, token)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(floorPause):
		}
	}
}

func (l *floorLock) Close() error { return l.client.Close() }
