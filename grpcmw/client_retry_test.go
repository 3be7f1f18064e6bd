package grpcmw_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// refusalOf returns a status as a guard's.
func refusalOf(domain, reason string, after time.Duration) error {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: domain, Reason: reason}}
	if after != 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
	s, err := status.New(codes.Aborted, "refused").WithDetails(details...)
	check(err)
	return s.Err()
}

// A repeat that comes while the first one runs waits for it, and gets its answer.
func TestWaitForTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		conn, _ := clientOf(t, grpcmw.ClientConfig{}, bank{unary: func(context.Context, *dynamicpb.Message) (any, error) {
			time.Sleep(2500 * time.Millisecond)
			return receipt(runs.Add(1)), nil
		}}, newOnce(t, memstore.New()))
		ctx := dedupe.ContextWithKey(t.Context(), "k")
		start := time.Now()
		first := make(chan reply)
		go func() { first <- withdrawOf(ctx, conn) }()
		synctest.Wait()

		withdrawOf(ctx, conn).check(t, 1, true)
		checkWaited(t, start, 2500*time.Millisecond, 4500*time.Millisecond) // until a wait ends after the first one has
		got := <-first
		got.check(t, 1, false)
	})
}

func checkWaited(t testing.TB, since time.Time, least, most time.Duration) {
	t.Helper()
	if took := time.Since(since); took < least || took > most {
		t.Errorf("it took %v; want %v to %v", took, least, most)
	}
}

func TestWaitForAResource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn, seen := clientOf(t, grpcmw.ClientConfig{}, bank{unary: func(context.Context, *dynamicpb.Message) (any, error) {
			time.Sleep(2500 * time.Millisecond)
			return receipt(1), nil
		}}, newSerialize(t, memstore.New(), keyfuncs.Const("7")))
		first := make(chan reply)
		go func() { first <- withdrawOf(t.Context(), conn) }()
		synctest.Wait()

		withdrawOf(t.Context(), conn).check(t, 1, false)
		got := <-first
		got.check(t, 1, false)
		if len(seen.keys) < 4 {
			t.Errorf("%d calls arrived; want one, and at least three of the one that waited", len(seen.keys))
		}
	})
}

func TestWaitForTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failures := 3
		store := &changing{Store: memstore.New(), claimed: func(claimed dedupe.Claimed, err error) (dedupe.Claimed, error) {
			if failures--; failures >= 0 {
				return dedupe.Claimed{}, errOutage
			}
			return claimed, err
		}}
		conn, seen := clientOf(t, grpcmw.ClientConfig{}, scripted(), newOnce(t, store))
		start := time.Now()
		withdrawOf(t.Context(), conn).check(t, 1, false)
		checkWaited(t, start, 3*time.Second, 4500*time.Millisecond)
		seen.check(t, 4)
	})
}

// The key was used for another request: that does not change.
func TestMismatchIsFinal(t *testing.T) {
	t.Parallel()
	b, _ := counting()
	conn, seen := clientOf(t, grpcmw.ClientConfig{}, b, newOnce(t, memstore.New()))
	ctx := dedupe.ContextWithKey(t.Context(), "k")
	withdrawOf(ctx, conn).check(t, 1, false)
	call(ctx, conn, withdraw, "", transfer("7", "9")).checkRefused(t, dedupe.KeyReused)
	seen.check(t, 2)
}

func TestWhichRefusalsAreRepeated(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config  grpcmw.ClientConfig
		refusal error
		again   bool
	}{
		"no details":         {refusal: status.Error(codes.Unavailable, "down")},
		"another's domain":   {refusal: refusalOf("example.com", "IN_FLIGHT", time.Second)},
		"an unknown reason":  {refusal: refusalOf(domain, "TIRED", time.Second)},
		"a domain of theirs": {grpcmw.ClientConfig{Domain: "example.com"}, refusalOf("example.com", "IN_FLIGHT", time.Second), true},
		"not our domain":     {grpcmw.ClientConfig{Domain: "example.com"}, refusalOf(domain, "IN_FLIGHT", time.Second), false},
	}
	for _, outcome := range dedupe.Outcomes() {
		again := outcome == dedupe.InFlight || outcome == dedupe.Locked || outcome == dedupe.StoreUnavailable
		test := tests[outcome.String()]
		test.refusal, test.again = refusalOf(domain, outcome.Reason(), time.Second), again
		tests[outcome.String()] = test
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn, seen := clientOf(t, test.config, scripted(test.refusal))
				got := withdrawOf(t.Context(), conn)
				if test.again {
					got.check(t, 1, false)
					seen.check(t, 2)
				} else {
					got.checkFailed(t, status.Convert(test.refusal), false)
					seen.check(t, 1)
				}
			})
		})
	}
}

func TestHowLongIsWaited(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ after, least, most time.Duration }{
		"as asked": {30 * time.Second, 30 * time.Second, 37500 * time.Millisecond},
		"at most":  {time.Minute, time.Minute, time.Minute},
		"not said": {0, time.Second, 1250 * time.Millisecond},
		"backward": {-time.Hour, time.Second, 1250 * time.Millisecond},
		"too long": {time.Minute + 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				refusal := refusalOf(domain, "IN_FLIGHT", test.after)
				conn, _ := clientOf(t, grpcmw.ClientConfig{}, scripted(refusal))
				start := time.Now()
				got := withdrawOf(t.Context(), conn)
				checkWaited(t, start, test.least, test.most)
				if test.most == 0 {
					got.checkFailed(t, status.Convert(refusal), false)
				} else {
					got.check(t, 1, false)
				}
			})
		})
	}
}

// Refused again and again, and those refused together at other times.
func TestWaitsGrowAndAttemptsEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ given, attempts int }{"default": {0, 10}, "three": {3, 3}, "one": {1, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				refusal := refusalOf(domain, "STORE_UNAVAILABLE", 4*time.Second)
				conn, seen := clientOf(t, grpcmw.ClientConfig{MaxAttempts: test.given}, scripted(slices.Repeat([]error{refusal}, 20)...))
				withdrawOf(t.Context(), conn).checkFailed(t, status.Convert(refusal), false)
				seen.check(t, test.attempts)
				uneven := test.attempts == 1
				for i := 1; i < len(seen.at); i++ {
					waited := seen.at[i].Sub(seen.at[i-1])
					if waited < 4*time.Second || waited > time.Duration(4+i)*time.Second {
						t.Errorf("wait %d took %v", i, waited)
					}
					uneven = uneven || waited != 4*time.Second
				}
				if !uneven {
					t.Error("all waited the same")
				}
			})
		})
	}
}

// A wait that the deadline would end is not begun: the caller learns why there is no answer.
func TestDeadlineBeforeTheWaitIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refusal := refusalOf(domain, "IN_FLIGHT", 4*time.Second)
		conn, seen := clientOf(t, grpcmw.ClientConfig{}, scripted(slices.Repeat([]error{refusal}, 20)...))
		ctx, cancel := context.WithTimeout(t.Context(), 4001*time.Millisecond)
		defer cancel()
		start := time.Now()
		withdrawOf(ctx, conn).checkFailed(t, status.Convert(refusal), false)
		// One wait fits, if it leaves some of the last millisecond for an answer.
		checkWaited(t, start, 4*time.Second, 4001*time.Millisecond-1)
		seen.check(t, 2)
	})
}

func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn, seen := clientOf(t, grpcmw.ClientConfig{}, scripted(refusalOf(domain, "IN_FLIGHT", 40*time.Second)))
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		time.AfterFunc(3*time.Second, cancel)
		if got := withdrawOf(ctx, conn); status.Code(got.err) != codes.Canceled {
			t.Errorf("got %v", got.err)
		}
		checkWaited(t, start, 3*time.Second, 3*time.Second)
		seen.check(t, 1)
	})
}
