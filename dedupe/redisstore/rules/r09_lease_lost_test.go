package rules

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// TestR9Partition cuts a holder off from Redis without a word, while others that still reach it wait
// for its keys. By the process's monotonic clock, the holder's handlers must have been told, and those
// that listen be out, before another one starts.
func TestR9Partition(t *testing.T) { // its parts are parallel, but to nothing else: it measures
	const lease, keys = 2 * time.Second, 8
	partitions := map[string]func(t *testing.T, r *rig){
		"before a renewal": func(*testing.T, *rig) {},
		"after renewals":   func(t *testing.T, r *rig) { r.awaitRenewals(t, 2*keys) },
		"within a renewal": func(t *testing.T, r *rig) { succeed(t, r.proxy.On(extends, 1, redistest.Block()).Wait(t.Context())) },
		"renewals lost":    func(t *testing.T, r *rig) { succeed(t, r.proxy.On(extends, 0, redistest.DropReply).Wait(t.Context())) },
	}
	for name, partition := range partitions {
		for kind, newGuard := range map[string]func(*testing.T, dedupe.Store, ...dedupe.Option) *dedupe.Guard{
			"serialize": newSerialize, "once": newOnce,
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				cutOff := newGuard(t, r.store, dedupe.WithLease(lease))
				others := newGuard(t, r.beside(), dedupe.WithLease(lease), dedupe.WithWait(patience))
				handovers := make([]handover, keys)
				var holders, group sync.WaitGroup
				holders.Add(keys)
				for i := range keys {
					h, key := &handovers[i], strconv.Itoa(i)
					group.Go(func() {
						_ = cutOff.Run(t.Context(), key, func(ctx context.Context) error {
							holders.Done()
							<-ctx.Done()
							h.told, h.cause = time.Now(), context.Cause(ctx)
							return errors.New("not done")
						})
					})
				}
				holders.Wait()
				for i := range keys {
					h, key := &handovers[i], strconv.Itoa(i)
					group.Go(func() {
						h.err = others.Run(t.Context(), key, func(context.Context) error {
							h.started = time.Now()
							return nil
						})
					})
				}
				partition(t, r)
				r.proxy.BlackHole()
				group.Wait()
				checkHandovers(t, handovers, lease)
			})
		}
	}
}

// handover is how a key went from a holder that lost it to the next.
type handover struct {
	told    time.Time // when the holder's context ended
	cause   error     // and why
	started time.Time // when the next one's handler ran
	err     error
}

func checkHandovers(t *testing.T, handovers []handover, lease time.Duration) {
	t.Helper()
	least := lease
	for _, h := range handovers {
		succeed(t, h.err)
		if !errors.Is(h.cause, dedupe.ErrLeaseLost) {
			t.Errorf("the holder's context ended with %v", h.cause)
		}
		least = min(least, h.started.Sub(h.told))
	}
	t.Logf("holders were told at least %v before the next one started", least.Round(time.Microsecond))
	if least <= 0 {
		t.Errorf("two holders for %v", -least)
	}
}

// awaitRenewals returns when the server has been sent so many renewals.
func (r *rig) awaitRenewals(t *testing.T, count int) {
	t.Helper()
	redistest.Eventually(t, patience, func() bool { return r.proxy.Count(extends) >= count }, "there were no renewals")
}

// TestR9RecordGone takes the record from under a handler. The next renewal, a third of a lease away at
// most, finds out.
func TestR9RecordGone(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	for name, remove := range map[string]func(t *testing.T, r *rig, key string){
		"DEL":      func(t *testing.T, r *rig, key string) { succeed(t, r.direct.Del(t.Context(), key).Err()) },
		"FLUSHALL": func(t *testing.T, r *rig, _ string) { succeed(t, r.direct.FlushAll(t.Context()).Err()) },
		"restart":  func(_ *testing.T, r *rig, _ string) { r.server.Restart() },
		"another's": func(t *testing.T, r *rig, key string) {
			succeed(t, r.direct.HSet(t.Context(), key, "t", "another's token!").Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			guard := newSerialize(t, r.store, dedupe.WithLease(lease))
			succeed(t, guard.Run(t.Context(), "key", func(ctx context.Context) error {
				remove(t, r, r.direct.Keys(t.Context(), "*").Val()[0])
				gone := time.Now()
				await(t, ctx.Done(), "the end of the handler's context")
				if cause := context.Cause(ctx); !errors.Is(cause, dedupe.ErrLeaseLost) || errors.Is(cause, dedupe.ErrHoldTooLong) {
					t.Errorf("the context ended with %v", cause)
				}
				if took := time.Since(gone); took > lease/3+slack {
					t.Errorf("that took %v", took)
				}
				l, _ := dedupe.LeaseFrom(ctx)
				match(t, l.Check(t.Context()), dedupe.ErrLeaseLost)
				return nil
			}))
		})
	}
}

// TestR9DeadlineIsCountedFromBeforeTheClaim delays the reply to a claim, and to a renewal: the server
// grants from when it has carried them out, so time on the way back is not the owner's.
func TestR9DeadlineIsCountedFromBeforeTheClaim(t *testing.T) {
	t.Parallel()
	const lease, delay = 10 * time.Second, 500 * time.Millisecond
	r := newRig(t)
	guard := newSerialize(t, redisstore.New(stockClient(t, r.proxy.Addr()), redisstore.WithBudget(patience)), dedupe.WithLease(lease))
	slow := r.proxy.On(redistest.Contains("evalsha"), 0, redistest.Delay(delay))
	succeed(t, guard.Run(t.Context(), "key", func(ctx context.Context) error {
		l, _ := dedupe.LeaseFrom(ctx)
		// The server may end the lease as early as lease after now - delay. Timers fire late.
		if latest := time.Now().Add(lease - delay - lease/20); !l.Deadline().Before(latest) {
			t.Errorf("the deadline is %v after what the server grants", l.Deadline().Sub(latest))
		}
		first := l.Deadline()
		succeed(t, l.Check(ctx))
		if latest := time.Now().Add(lease - delay - lease/20); !l.Deadline().Before(latest) || !l.Deadline().After(first) {
			t.Errorf("the renewed deadline is %v after what the server grants", l.Deadline().Sub(latest))
		}
		return nil
	}))
	if slow.Fired() < 2 {
		t.Fatalf("%d replies were delayed", slow.Fired())
	}
}
