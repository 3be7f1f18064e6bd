package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/keyfuncs"

	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/wire"
)

const keyHeader = "Idempotency-Key"

// guarding is what stands before a handler: nothing, the floor, or guards.
type guarding struct {
	floor  *contender.Floor
	guards []*dedupe.Guard
	close  func() error
}

func newGuarding(job Job, counter *wire.Counter) (*guarding, error) {
	if job.Handler.Variant == Bare {
		return &guarding{close: func() error { return nil }}, nil
	}
	client := contender.InterlockClient(contender.Setting{Servers: job.Servers, Dial: counter.Dial})
	if job.Handler.Variant == FloorVariant {
		floor := contender.NewFloor(client, 0)
		return &guarding{floor: &floor, close: client.Close}, nil
	}

	commands, closeClients := redisstore.Client(client), client.Close
	if job.Handler.AutoPipeline {
		pipeline, err := contender.AutoPipeline(client)
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		commands, closeClients = pipeline, func() error { return errors.Join(pipeline.Close(), client.Close()) }
	}
	store := redisstore.New(commands, redisstore.WithBudget(contender.Budget))
	var guard *dedupe.Guard
	var err error
	switch job.Handler.Variant {
	case Serialize:
		guard, err = dedupe.Serialize(store, "account", keyfuncs.Header(keyHeader))
	case OnceFresh, OnceReplayed:
		guard, err = dedupe.Once(store, keyfuncs.Anyone, keyfuncs.Header(keyHeader))
	default:
		err = fmt.Errorf("no variant is named %q", job.Handler.Variant)
	}
	if err != nil {
		return nil, errors.Join(err, closeClients())
	}
	return &guarding{guards: []*dedupe.Guard{guard}, close: func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return errors.Join(guard.Close(ctx), closeClients())
	}}, nil
}

var errHeld = errors.New("the key of a request of its own is held")

// around runs next under the floor, as somebody would who writes it by hand.
func (g *guarding) around(ctx context.Context, key string, next func()) error {
	token, ok, err := g.floor.TryAcquire(ctx, key)
	if err != nil {
		return err
	}
	if !ok {
		return errHeld
	}
	next()
	return g.floor.Release(context.WithoutCancel(ctx), key, token)
}
