package adaptertest

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// Stores returns the stores for [Run]: memstore, and redisstore on miniredis and on a redis-server of
// its own. Without the binary that last one is skipped, or fails where CI is "true".
func Stores() map[string]func(testing.TB) dedupe.Store {
	return map[string]func(testing.TB) dedupe.Store{
		"memstore": func(testing.TB) dedupe.Store { return memstore.New() },
		"miniredis": func(t testing.TB) dedupe.Store {
			server := miniredis.RunT(t)
			server.ClockTTL(true)
			client := redis.NewClient(&redis.Options{Addr: server.Addr(), ReadTimeout: patience, PoolTimeout: patience})
			t.Cleanup(func() { _ = client.Close() })
			return redisstore.New(client, redisstore.WithBudget(patience)) // a loaded machine is not an outage
		},
		"redis": func(t testing.TB) dedupe.Store {
			return redisstore.New(redistest.Start(t).Client(), redisstore.WithBudget(patience))
		},
	}
}
