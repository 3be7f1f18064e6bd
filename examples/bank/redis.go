package main

import (
	"net/url"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe/redisstore"
)

// startRedis starts a Redis inside the process, on a port of its own so that other processes can
// use it too. It keeps nothing beyond the process.
func startRedis() (address string, stop func(), err error) {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // leases and kept answers have to end by themselves, as they do in Redis
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	return "redis://" + server.Addr(), server.Close, nil
}

// connect returns a client for the balances. Nothing is sent again behind the bank's back: a
// transaction whose reply was lost may have been carried out, and would then count twice.
func connect(rawURL string) (redis.UniversalClient, error) {
	if u, err := url.Parse(rawURL); err == nil {
		query := u.Query()
		query.Set("max_retries", "-1")
		u.RawQuery = query.Encode()
		rawURL = u.String()
	}
	return redisstore.Connect(rawURL, 2*time.Second)
}
