package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
)

// wrap makes a [dedupe.Store]'s error of a client's: Redis saying that the key holds something
// else is about the record, everything else is an outage.
func wrap(script *script, err error) error {
	var said redis.Error
	if errors.As(err, &said) { // before Redis 7 the code stands in the middle of the text
		if strings.Contains(said.Error(), "WRONGTYPE ") {
			return fmt.Errorf("redisstore: %s: %w: %w", script.name, dedupe.ErrRecordUnreadable, err)
		}
		for code, fix := range fixes {
			if strings.Contains(said.Error(), code+" ") {
				return fmt.Errorf("redisstore: %s: %w: %w (%s)", script.name, dedupe.ErrStoreUnavailable, err, fix)
			}
		}
	}
	return fmt.Errorf("redisstore: %s: %w: %w", script.name, dedupe.ErrStoreUnavailable, err)
}

const permissions = "allow the Redis user +evalsha +eval +time +exists +hmget +hset +hdel +del +pexpire +pttl on the store's prefix"

// fixes says what an operator can do about errors that do not go away by themselves.
var fixes = map[string]string{
	"OOM":                                 "Redis is full: raise maxmemory, with maxmemory-policy noeviction",
	"NOPERM":                              permissions,
	"The user executing the script can't": permissions, // Redis 7.0's words for it inside a script
	"ACL failure in script:":              permissions, // and those of Redis 7.2 and Valkey
	"NOAUTH":                              "give the client a user and a password",
	"READONLY":                            "the client talks to a replica: point it at the primary, or use a failover client",
	"MISCONF":                             "Redis cannot save to disk and refuses writes: see its log",
}

var errReply = errors.New("a reply that is not this call's, or not understood")
