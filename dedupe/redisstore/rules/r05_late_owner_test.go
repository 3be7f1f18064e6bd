package rules

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// TestR5LateOwner stops a process that owns a key until another one has it, in each state that the
// other's record can be in. What the process wants of the store when it goes on is refused, and
// changes nothing.
func TestR5LateOwner(t *testing.T) {
	t.Parallel()
	successors := map[string]func(t *testing.T, successor owner){
		"another holds the key": func(t *testing.T, successor owner) { successor.awaitGrant(t, long) },
		"another has completed": func(t *testing.T, successor owner) {
			successor.awaitGrant(t, long)
			succeed(t, successor.complete(t.Context(), []byte("answer"), long))
		},
		"another left a tombstone": func(t *testing.T, successor owner) {
			successor.awaitGrant(t, long)
			succeed(t, successor.complete(t.Context(), nil, long))
		},
	}
	for name, succession := range successors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			mine := newOwner(r.store)
			late := startChild(t, "owner", ownerTask{Addr: r.server.Addr(), Holder: mine.holder, Lease: 300 * time.Millisecond})
			late.heard(t, "granted")
			late.pause(t)
			succession(t, mine.rival())
			before := r.record(t, mine.key())
			late.resume(t)

			for _, operation := range []string{"extend", "complete", "release"} {
				if got := late.ask(t, operation); got != "lost" {
					t.Errorf("the late owner's %s: %s", operation, got)
				}
				if after := r.record(t, mine.key()); !maps.Equal(before, after) {
					t.Fatalf("the late owner's %s made %q of %q", operation, after, before)
				}
			}
			if ttl := r.direct.PTTL(t.Context(), mine.key()).Val(); ttl <= long/2 || ttl > long {
				t.Errorf("the TTL is %v", ttl)
			}
		})
	}
}

// TestR5NothingIsCreatedAgain has the late owner find nothing.
func TestR5NothingIsCreatedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mine := newOwner(r.store)
	late := startChild(t, "owner", ownerTask{Addr: r.server.Addr(), Holder: mine.holder, Lease: 300 * time.Millisecond})
	late.heard(t, "granted")
	late.pause(t)
	r.awaitEmpty(t)
	late.resume(t)
	for operation, want := range map[string]string{"extend": "lost", "complete": "lost", "release": "done"} {
		if got := late.ask(t, operation); got != want {
			t.Errorf("the late owner's %s: %s, want %s", operation, got, want)
		}
		if size := r.direct.DBSize(t.Context()).Val(); size != 0 {
			t.Fatalf("the late owner's %s made a record", operation)
		}
	}
}

// TestR5LateHandler is the same with a guard's handler in the process: its context ends with the
// cause, and its result is not put in the place of the other's.
func TestR5LateHandler(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]bool{"serialize": false, "once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			late := startChild(t, "holder", holderTask{Addr: r.server.Addr(), Key: "key", Lease: 300 * time.Millisecond, Once: once})
			late.heard(t, "running")
			late.pause(t)
			var keys []string
			redistest.Eventually(t, patience, func() bool {
				keys = append(keys, r.direct.Keys(t.Context(), "*").Val()...)
				return len(keys) > 0 && r.direct.DBSize(t.Context()).Val() == 0
			}, "the lease did not end")
			successor := map[string]any{"v": "1", "t": "successor-token!", "f": time.Now().UnixMicro(), "e": long.Microseconds()}
			succeed(t, r.direct.HSet(t.Context(), keys[0], successor).Err())
			before := r.record(t, keys[0])
			late.resume(t)

			if got := late.heard(t, "cancelled"); got != "true" {
				t.Error("the handler's context was not cancelled because of the lease")
			}
			if got := late.heard(t, "settled"); got != "true" {
				t.Error("the late handler's result was not refused")
			}
			if after := r.record(t, keys[0]); !maps.Equal(before, after) {
				t.Fatalf("the late handler made %q of %q", after, before)
			}
		})
	}
}

// ownerTask is what a child is to own.
type ownerTask struct {
	Addr   string
	Holder dedupe.Holder
	Lease  time.Duration
}

// playOwner claims a key and then does with it what it is told to.
func playOwner(text []byte, hear <-chan string, tell func(string, ...any)) {
	task := decode[ownerTask](text)
	o := owner{redisstore.New(redis.NewClient(&redis.Options{Addr: task.Addr})), task.Holder}
	claimed, err := o.claim(context.Background(), task.Lease)
	must(err)
	tell("%v", claimed.Status)
	for operation := range hear {
		switch err := operations[operation](context.Background(), o); {
		case err == nil:
			tell("%s done", operation)
		case errors.Is(err, dedupe.ErrLeaseLost):
			tell("%s lost", operation)
		default:
			tell("%s %v", operation, err)
		}
	}
}

func decode[T any](text []byte) (value T) {
	must(json.Unmarshal(text, &value))
	return value
}
