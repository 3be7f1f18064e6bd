// Package redisstore keeps the records of guards in Redis, 6.2 or later, or Valkey: on one server,
// behind Sentinel, or in a cluster.
//
//	store := redisstore.New(redis.NewClient(&redis.Options{Addr: "localhost:6379"}))
//
// One hash holds everything about one guarded key: owner, fence, fingerprint, answer, and the line of
// those that wait. Its name is
// the prefix and the digest of the key; raw keys are not in Redis. Each operation is one script that
// touches that one hash, so that it also runs while a cluster migrates the slot, and that has the
// same result when it is carried out twice, as happens when a client sends a command again because
// its reply was lost. Every record has a TTL at all times.
//
// A request costs two commands, a conflict or a replay one. When many are under way at once, commands
// share round trips.
//
// # Waiting
//
// Who releases a key makes the first in its line the owner, in the same script, and PUBLISH tells that
// one's process; a process that does not listen any more is passed over. So each process that waits has
// one subscription, in a cluster one for each node it waits at, opened at the first conflict and closed
// a quarter of a minute after the last; until it is there, waiting requests ask from time to time. Words that get
// lost are made up for: waiters ask again when the owner's lease is over, and all of them after a
// reconnection. A key that is granted in line has a lease of 2 s until its owner renews it, which is how
// long a process that is stopped can hold up the others.
//
// # Clients
//
// Any go-redis client will do. Every call returns within the store's budget ([WithBudget]), also when
// Redis is silent. Set ContextTimeoutEnabled, or use [Connect] or [Open]: a client without is used
// through a copy that honours deadlines and has none of its hooks. Cluster clients are called on
// goroutines that can be left behind.
//
// # Redis itself
//
// Set maxmemory-policy to noeviction: an evicted record is a lock let go. When Redis is full, claims
// fail with an error, while renewals, releases and answers of requests that run still succeed.
// What Redis loses, by a failover to a replica that lags or a restart without persistence, the store
// has forgotten: fences, which follow Redis's clock, still rise.
//
// The Redis user needs the commands evalsha, eval, time, exists, hmget, hset, hdel, del, pexpire and
// pttl on the prefix; and to wait in line publish, subscribe and ping, in a cluster spublish, ssubscribe
// and sunsubscribe, on the channels that begin with the prefix. Without those, waiting requests ask from
// time to time, and a warning (log/slog) says so once.
package redisstore
