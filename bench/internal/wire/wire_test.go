package wire

import (
	"context"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
	"github.com/redis/go-redis/v9"
)

// stream is three requests, one of which carries what looks like others.
const stream = "*1\r\n$4\r\nPING\r\n" +
	"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$14\r\n*1\r\n$4\r\nPING\r\n" + "\r\n" +
	"*2\r\n$3\r\nGET\r\n$0\r\n\r\n"

func TestFeedCountsHoweverTheStreamIsCut(t *testing.T) {
	for size := 1; size <= len(stream); size++ {
		var p parser
		count := 0
		for rest := stream; rest != ""; {
			n := min(size, len(rest))
			count += p.feed([]byte(rest[:n]))
			rest = rest[n:]
		}
		if count != 3 {
			t.Errorf("%d requests in pieces of %d bytes, want 3", count, size)
		}
	}
}

// TestCounterAgreesWithMonitor holds the count against what MONITOR shows, for single commands, a
// pipeline, a transaction, and scripts that call others.
func TestCounterAgreesWithMonitor(t *testing.T) {
	server := redistest.Start(t)
	var counter Counter
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: counter.Dial})
	t.Cleanup(func() { _ = client.Close() })
	ctx := context.Background()
	// Greetings are refused in part by older servers, and MONITOR does not show those: they are to be
	// over. Pipelines have connections of their own.
	ping := func(p redis.Pipeliner) error { return p.Ping(ctx).Err() }
	if err := client.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Pipelined(ctx, ping); err != nil {
		t.Fatal(err)
	}
	server.ClientCommands()
	before := counter.Commands()

	client.Set(ctx, "k", strings.Repeat("*9\r\n", 10_000), 0)
	script := redis.NewScript(`for i = 1, 50 do redis.call("get", KEYS[1]) end return 1`)
	for range 3 {
		if err := script.Run(ctx, client, []string{"k"}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range 20 {
			p.Get(ctx, "k")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Incr(ctx, "n").Err() }); err != nil {
		t.Fatal(err)
	}

	if sent, seen := counter.Commands()-before, server.ClientCommands(); sent != seen {
		t.Errorf("counted %d commands, MONITOR showed %d", sent, seen)
	}
}
