package rules

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// TestR10AThirdOfTheLease takes the time of a claim and of the renewals that follow.
func TestR10AThirdOfTheLease(t *testing.T) {
	t.Parallel()
	const lease, renewals = 1800 * time.Millisecond, 3
	r := newRig(t)
	sent := &stopwatch{}
	r.proxy.On(sent.of(claims), 1, redistest.Delay(0))
	r.proxy.On(sent.of(extends), 0, redistest.Delay(0))
	guard := newSerialize(t, r.store, dedupe.WithLease(lease))
	succeed(t, guard.Run(t.Context(), "key", func(context.Context) error {
		r.awaitRenewals(t, renewals)
		return nil
	}))
	times := sent.read()
	for i := 1; i <= renewals; i++ {
		// Timers fire late, never early; the earlier of the two may have been late on its way.
		if gap := times[i].Sub(times[i-1]); gap < lease/3-lease/10 || gap > lease/2 {
			t.Errorf("renewal %d came %v after what was before it", i, gap)
		}
	}
}

// stopwatch notes when the requests come by that a match picks.
type stopwatch struct {
	mu    sync.Mutex
	times []time.Time
}

func (s *stopwatch) of(match redistest.Match) redistest.Match {
	return func(args []string) bool {
		found := match(args)
		if found {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.times = append(s.times, time.Now())
		}
		return found
	}
}

func (s *stopwatch) read() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times
}

// TestR10SingleFailures has every other renewal fail, in each way that one can, for longer than a
// lease. The handler does not notice.
func TestR10SingleFailures(t *testing.T) {
	t.Parallel()
	const lease = 1500 * time.Millisecond
	for name, fault := range map[string]redistest.Fault{
		"error":   redistest.ReplyWith("-ERR for a test\r\n"),
		"cut":     redistest.CutAfterRequest,
		"dropped": redistest.DropReply,
		"stale":   redistest.StaleReply,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			asked := 0
			everyOther := func(args []string) bool {
				if !extends(args) {
					return false
				}
				asked++
				return asked%2 == 1
			}
			faults := r.proxy.On(everyOther, 0, fault)
			var failed, lost atomic.Int32
			guard := newSerialize(t, r.store, dedupe.WithLease(lease), dedupe.WithObserver(func(e dedupe.Event) {
				if e.Kind == dedupe.EventRenewFailed {
					failed.Add(1)
				}
				if e.Kind == dedupe.EventLeaseLost {
					lost.Add(1)
				}
			}))
			start := time.Now()
			succeed(t, guard.Run(t.Context(), "key", func(ctx context.Context) error {
				redistest.Eventually(t, patience, func() bool { return faults.Fired() >= 2 && time.Since(start) > 3*lease/2 },
					"no renewals failed")
				return context.Cause(ctx)
			}))
			if lost.Load() > 0 || name != "cut" && failed.Load() == 0 {
				t.Errorf("%d renewals failed, the lease was lost %d times", failed.Load(), lost.Load())
			}
		})
	}
}

// TestR10NoneAfterRelease looks for renewals behind the release of their key, also where one was on
// its way when the handler returned. Another key that is renewed meanwhile shows that there was time.
func TestR10NoneAfterRelease(t *testing.T) {
	t.Parallel()
	const lease = 600 * time.Millisecond
	for name, end := range map[string]func(t *testing.T, r *rig){
		"between renewals": func(t *testing.T, r *rig) { r.awaitRenewals(t, 2) },
		"within a renewal": func(t *testing.T, r *rig) { succeed(t, r.proxy.On(extends, 1, redistest.Block()).Wait(t.Context())) },
		"within one that the server has not seen": func(t *testing.T, r *rig) {
			succeed(t, r.proxy.On(extends, 1, redistest.BlockRequest()).Wait(t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			guard := newSerialize(t, r.store, dedupe.WithLease(lease))
			succeed(t, guard.Run(t.Context(), "key", func(context.Context) error {
				end(t, r)
				return nil
			}))
			released := r.proxy.Requests()
			succeed(t, guard.Run(t.Context(), "another", func(context.Context) error {
				r.awaitRenewals(t, countOf(released, extends)+3)
				return nil
			}))
			checkNoneAfterRelease(t, r)
		})
	}
}

// TestR10RenewalIsJoined has a handler return while a renewal waits for its reply. The release must not
// be sent before the renewal has come to its end: whichever came second would win.
func TestR10RenewalIsJoined(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := redis.NewClient(&redis.Options{Addr: r.proxy.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	order := &callOrder{}
	client.AddHook(order)
	guard := newSerialize(t, redisstore.New(client), dedupe.WithLease(600*time.Millisecond))
	succeed(t, guard.Run(t.Context(), "key", func(context.Context) error {
		return r.proxy.On(extends, 1, redistest.Block()).Wait(t.Context())
	}))
	if order.released != 1 || order.early {
		t.Errorf("%d releases; one within a renewal: %v", order.released, order.early)
	}
}

// callOrder is a hook that looks for releases within renewals.
type callOrder struct {
	mu       sync.Mutex
	renewals int // that run
	released int
	early    bool
}

func (o *callOrder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		var args []string
		for _, arg := range command.Args() {
			args = append(args, fmt.Sprint(arg))
		}
		o.mu.Lock()
		if releases(args) {
			o.released++
			o.early = o.early || o.renewals > 0
		}
		if extends(args) {
			o.renewals++
			defer func() {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.renewals--
			}()
		}
		o.mu.Unlock()
		return next(ctx, command)
	}
}

func (o *callOrder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *callOrder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// checkNoneAfterRelease checks that, for each key, nothing extends it between a release and a claim.
func checkNoneAfterRelease(t *testing.T, r *rig) {
	t.Helper()
	held := map[string]bool{}
	releasedKeys := 0
	for _, args := range r.proxy.Requests() {
		switch {
		case claims(args):
			held[args[3]] = true
		case releases(args):
			held[args[3]] = false
			releasedKeys++
		case extends(args) && !held[args[3]]:
			t.Error("a renewal came after the release of its key")
		}
	}
	if releasedKeys < 2 {
		t.Errorf("%d keys were released", releasedKeys)
	}
}

func countOf(requests [][]string, match redistest.Match) (count int) {
	for _, args := range requests {
		if match(args) {
			count++
		}
	}
	return count
}

// TestR10MaximumHold has a handler hang.
func TestR10MaximumHold(t *testing.T) {
	t.Parallel()
	const lease, maxHold = 1200 * time.Millisecond, 2870 * time.Millisecond // the last renewal has little left
	r := newRig(t)
	guard := newSerialize(t, r.store, dedupe.WithLease(lease), dedupe.WithMaxHold(maxHold))
	running, hang := make(chan struct{}), make(chan struct{})
	told := make(chan error, 1)
	start := time.Now()
	go func() {
		_ = guard.Run(t.Context(), "key", func(ctx context.Context) error {
			close(running)
			<-ctx.Done()
			told <- context.Cause(ctx)
			<-hang
			return nil
		})
	}()
	defer close(hang)
	await(t, running, "the handler's start")

	others := newSerialize(t, r.beside(), dedupe.WithWait(patience))
	var next time.Duration
	succeed(t, others.Run(t.Context(), "key", func(context.Context) error {
		next = time.Since(start)
		select {
		case cause := <-told:
			if !errors.Is(cause, dedupe.ErrLeaseLost) || !errors.Is(cause, dedupe.ErrHoldTooLong) {
				t.Errorf("the context ended with %v", cause)
			}
		default:
			t.Error("the next one started before the first was told")
		}
		return nil
	}))
	t.Logf("the next one started after %v", next.Round(time.Millisecond))
	if next < maxHold-lease || next > maxHold+slack {
		t.Errorf("the next one started after %v", next)
	}
}
