package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
	"github.com/interlock-go/interlock/dedupe/storetest"
)

func TestOnMiniredis(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	runSuite(t, redis.NewClient(&redis.Options{Addr: server.Addr()}))
}

func TestOnRedis(t *testing.T) {
	t.Parallel()
	runSuite(t, redistest.Start(t).Client())
}

func TestOnValkey(t *testing.T) {
	t.Parallel()
	runSuite(t, redistest.Start(t, redistest.Binary("valkey-server")).Client())
}

func TestOnCluster(t *testing.T) {
	t.Parallel()
	runSuite(t, redistest.StartCluster(t, 3).Client())
}

// runSuite runs the store suite with a budget that a loaded machine keeps to.
func runSuite(t *testing.T, client redis.UniversalClient) {
	store := redisstore.New(client, redisstore.WithBudget(10*time.Second))
	storetest.Run(t, func(*testing.T) dedupe.Store { return store },
		storetest.WithLines(),
		storetest.WithTTLs(func(ctx context.Context, d dedupe.Digest) (time.Duration, bool, error) {
			rest, err := client.PTTL(ctx, store.Key(d)).Result()
			switch {
			case err != nil:
				return 0, false, err
			case rest == -2: // no such key
				return 0, false, nil
			case rest == -1: // a key without a TTL
				return 1<<63 - 1, true, nil
			default:
				return rest, true, nil
			}
		}),
		storetest.WithCorrupt(func(ctx context.Context, d dedupe.Digest, kind storetest.Corruption) error {
			key := store.Key(d)
			if err := client.Del(ctx, key).Err(); err != nil {
				return err
			}
			switch kind {
			case storetest.Foreign:
				return client.Set(ctx, key, "another program's", time.Minute).Err()
			case storetest.Damaged:
				return client.HSet(ctx, key, "v", "1", "t", "0123456789abcdef", "f", "many", "e", "soon").Err()
			case storetest.Newer:
				return client.HSet(ctx, key, "v", "2", "t", "0123456789abcdef").Err()
			default:
				return errors.New("an unknown kind of damage")
			}
		}),
	)
}
