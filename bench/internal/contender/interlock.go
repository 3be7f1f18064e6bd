package contender

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/redis/go-redis/v9"
)

const interlockModule = "github.com/interlock-go/interlock"

var interlock = Contender{
	Name:   Interlock,
	Module: interlockModule,
	Configuration: "dedupe.Serialize and Guard.Run over redisstore.New with a go-redis client of stock options and ContextTimeoutEnabled; defaults (lease 30 s, " +
		"renewed every 10 s) but for WithWait(10m), WithMaxWaiters(10000) and WithBudget(10s), so that an overloaded machine is measured rather than refused",
	Open: func(s Setting) (Lock, error) {
		client := InterlockClient(s)
		return newInterlock(client, s, client.Close)
	},
}

var interlockAutoPipeline = Contender{
	Name:          AutoPipelined,
	Module:        interlockModule,
	Configuration: "as interlock, over the client's AutoPipeline with its default options (experimental in go-redis)",
	Open: func(s Setting) (Lock, error) {
		client := InterlockClient(s)
		pipeline, err := AutoPipeline(client)
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		return newInterlock(pipeline, s, func() error { return errors.Join(pipeline.Close(), client.Close()) })
	},
}

// InterlockClient returns a client as Interlock's documentation recommends one.
func InterlockClient(s Setting) redis.UniversalClient {
	o := options(s)
	o.ContextTimeoutEnabled = true
	return redis.NewUniversalClient(o)
}

// AutoPipeline returns the client's automatic pipeline, which is the caller's to close.
func AutoPipeline(client redis.UniversalClient) (*redis.AutoPipeliner, error) {
	able, ok := client.(interface {
		AutoPipeline() (*redis.AutoPipeliner, error)
	})
	if !ok {
		return nil, errors.New("contender: the client has no AutoPipeline")
	}
	return able.AutoPipeline()
}

// Budget is the store's budget in every measurement but that of a partition.
const Budget = 10 * time.Second

func newInterlock(client redisstore.Client, s Setting, closeClients func() error) (Lock, error) {
	settings := []dedupe.Option{dedupe.WithWait(10 * time.Minute), dedupe.WithMaxWaiters(10_000)}
	if s.Lease > 0 {
		settings = append(settings, dedupe.WithLease(s.Lease))
	}
	var store []redisstore.Option
	if !s.Watch { // whose subject is what happens when Redis is silent
		store = append(store, redisstore.WithBudget(Budget))
	}
	guard, err := dedupe.Serialize(redisstore.New(client, store...), "bench", nil, settings...)
	if err != nil {
		return nil, errors.Join(err, closeClients())
	}
	return &interlockLock{guard, closeClients}, nil
}

type interlockLock struct {
	guard        *dedupe.Guard
	closeClients func() error
}

func (l *interlockLock) Run(ctx context.Context, key string, work func(context.Context)) error {
	return l.guard.Run(ctx, key, func(ctx context.Context) error {
		work(ctx)
		return nil
	})
}

func (l *interlockLock) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return errors.Join(l.guard.Close(ctx), l.closeClients())
}
