package rules

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
)

// unreadable are things that may be where a record is expected. The fields of those that are hashes
// are set on top of a record that is held, or completed.
var unreadable = map[string]map[string]any{
	"newer version":         {"v": "2"},
	"no version":            {"v": ""},
	"fence not a number":    {"f": "seven"},
	"fence empty":           {"f": ""},
	"fence infinite":        {"f": "inf"},
	"fence not a number 2":  {"f": "nan"},
	"fence too large":       {"f": "1e300"},
	"fence too long":        {"f": "99999999999999999"},
	"end not a number":      {"e": "soon"},
	"end empty":             {"e": ""},
	"end infinite":          {"e": "inf"},
	"end not a number 2":    {"e": "nan"},
	"end too large":         {"e": "1e300"},
	"everything is missing": nil,
}

// foreign are things that are no hashes.
var foreign = map[string]func(ctx context.Context, r *rig, key string) error{
	"string": func(ctx context.Context, r *rig, key string) error {
		return r.direct.Set(ctx, key, "text", time.Hour).Err()
	},
	"list": func(ctx context.Context, r *rig, key string) error { return r.direct.RPush(ctx, key, "text").Err() },
	"set":  func(ctx context.Context, r *rig, key string) error { return r.direct.SAdd(ctx, key, "text").Err() },
	"sorted set": func(ctx context.Context, r *rig, key string) error {
		return r.direct.ZAdd(ctx, key, redis.Z{Member: "text"}).Err()
	},
	"stream": func(ctx context.Context, r *rig, key string) error {
		return r.direct.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"field", "text"}}).Err()
	},
}

// spoilers put something unreadable in the place of a record.
func spoilers() map[string]func(ctx context.Context, r *rig, key string) error {
	all := map[string]func(context.Context, *rig, string) error{}
	for name, put := range foreign {
		all[name] = func(ctx context.Context, r *rig, key string) error {
			return errors.Join(r.direct.Del(ctx, key).Err(), put(ctx, r, key))
		}
	}
	for name, fields := range unreadable {
		all[name] = func(ctx context.Context, r *rig, key string) error {
			if fields == nil {
				return errors.Join(r.direct.Del(ctx, key).Err(), r.direct.HSet(ctx, key, "other", "field").Err())
			}
			return r.direct.HSet(ctx, key, fields).Err()
		}
	}
	return all
}

// TestR13HandlersDoNotRun puts each into the place of a request's record. The request is refused, also
// by a guard that lets requests run when the store is unavailable, and the thing is left as it is.
func TestR13HandlersDoNotRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	open := dedupe.WithFailOpen()
	guards := map[string]struct {
		guard   func(*testing.T, dedupe.Store) *dedupe.Guard
		status  int
		problem string
	}{
		"once":                 {onceGuard, http.StatusConflict, "answer-unavailable"},
		"once, fail open":      {func(t *testing.T, s dedupe.Store) *dedupe.Guard { return newOnce(t, s, open) }, http.StatusConflict, "answer-unavailable"},
		"serialize":            {serializeGuard, http.StatusServiceUnavailable, "store-unavailable"},
		"serialize, fail open": {func(t *testing.T, s dedupe.Store) *dedupe.Guard { return newSerialize(t, s, open) }, http.StatusServiceUnavailable, "store-unavailable"},
	}
	for what, spoil := range spoilers() {
		for name, g := range guards {
			t.Run(what+"/"+name, func(t *testing.T) {
				succeed(t, r.direct.FlushDB(t.Context()).Err())
				held := newHeld(t, r, g.guard)
				key := r.direct.Keys(t.Context(), "*").Val()[0]
				succeed(t, spoil(t.Context(), r, key))
				before := r.direct.Dump(t.Context(), key).Val()
				held.others.refuse(t, "held", g.status, g.problem)
				if after := r.direct.Dump(t.Context(), key).Val(); after != before {
					t.Error("what was there is not any more")
				}
				if a := held.finish(t); a.status != http.StatusCreated {
					t.Errorf("the holder got %+v", a)
				}
				if after := r.direct.Dump(t.Context(), key).Val(); after != before {
					t.Error("what was there is not any more after the holder's end")
				}
				held.others.refuse(t, "held", g.status, g.problem)
			})
		}
	}
}

// TestR13Operations has the owner of the record try everything.
func TestR13Operations(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for what, spoil := range spoilers() {
		t.Run(what, func(t *testing.T) {
			o := newOwner(r.store)
			o.grant(t, long)
			succeed(t, spoil(t.Context(), r, o.key()))
			all := maps.Clone(operations)
			all["claim again"] = func(ctx context.Context, o owner) error { _, err := o.claim(ctx, long); return err }
			for name, operation := range all {
				err := operation(t.Context(), o)
				if !errors.Is(err, dedupe.ErrRecordUnreadable) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// TestR13LeaseUnderHandler spoils the record of a handler that runs: its context must end before its
// lease does, since nobody can tell any more whose key it is.
func TestR13LeaseUnderHandler(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	guard := newSerialize(t, r.store, dedupe.WithLease(time.Second))
	succeed(t, guard.Run(t.Context(), "key", func(ctx context.Context) error {
		succeed(t, r.direct.HSet(t.Context(), r.direct.Keys(t.Context(), "*").Val()[0], "v", "2").Err())
		spoilt := time.Now()
		await(t, ctx.Done(), "the end of the handler's context")
		if cause := context.Cause(ctx); !errors.Is(cause, dedupe.ErrLeaseLost) || time.Since(spoilt) > time.Second {
			t.Errorf("the context ended with %v after %v", cause, time.Since(spoilt))
		}
		return nil
	}))
}

// TestR13Answers has the record of a completed request hold an answer that cannot be given.
func TestR13Answers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for what, blob := range map[string]string{
		"empty":          "",
		"newer version":  "\x02\xc9\x01\x00",
		"text":           "hello",
		"cut off":        "\x01\xc9",
		"status 0":       "\x01\x00\x00",
		"status 1000":    "\x01\xe8\x07\x00",
		"headers cut":    "\x01\xc9\x01\x02\x04Name",
		"endless number": "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"many headers":   "\x01\xc9\x01\xff\xff\xff\xff\x07",
	} {
		for name, options := range map[string][]dedupe.Option{"": nil, ", fail open": {dedupe.WithFailOpen()}} {
			t.Run(what+name, func(t *testing.T) {
				succeed(t, r.direct.FlushDB(t.Context()).Err())
				s := newService(nil, newOnce(t, r.store, options...))
				s.run(t, "key")
				succeed(t, r.direct.HSet(t.Context(), r.direct.Keys(t.Context(), "*").Val()[0], "a", blob).Err())
				s.refuse(t, "key", http.StatusConflict, "answer-unavailable")
				s.refuse(t, "key", http.StatusConflict, "answer-unavailable")
			})
		}
	}
}
