package redisstore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
)

// Two processes share a lock because they share a Redis.
func ExampleNew() {
	server := miniredis.NewMiniRedis() // stands for yours
	server.ClockTTL(true)
	if err := server.Start(); err != nil {
		panic(err)
	}
	defer server.Close()

	process := func() *dedupe.Guard {
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
		guard, err := dedupe.Serialize(redisstore.New(client), "report", nil)
		if err != nil {
			panic(err)
		}
		return guard
	}
	one, other := process(), process()

	err := one.Run(context.Background(), "2026-11", func(context.Context) error {
		err := other.Run(context.Background(), "2026-11", func(context.Context) error { return nil })
		fmt.Println("meanwhile the other is locked out:", errors.Is(err, dedupe.ErrLocked))
		return nil
	})
	fmt.Println(err)
	// Output:
	// meanwhile the other is locked out: true
	// <nil>
}

// Open makes a client with fitting settings from a URL.
func ExampleOpen() {
	store, err := redisstore.Open("redis://localhost:6379", redisstore.WithPrefix("shop:"))
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()
	fmt.Println(store.Key(dedupe.Digest{}))
	// Output: shop:{AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA}
}
