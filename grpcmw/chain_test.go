package grpcmw_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// A repeat is replayed while the resource is busy.
func TestOnceAroundSerialize(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	running := newGate()
	var runs atomic.Int64
	b := bank{unary: func(ctx context.Context, _ *dynamicpb.Message) (any, error) {
		run := runs.Add(1)
		if run == 2 {
			running.pass(ctx)
		}
		return receipt(run), nil
	}}
	conn := b.guarded(t, grpcmw.Config{}, newOnce(t, store), newSerialize(t, store, keyfuncs.Param("id")))
	request := transfer("7", "8")
	call(t.Context(), conn, withdraw, "first", request).check(t, 1, false)
	second := make(chan reply, 1)
	go func() { second <- call(context.Background(), conn, withdraw, "second", request) }()
	receive(t, running.entered, "the second")
	call(t.Context(), conn, withdraw, "first", request).check(t, 1, true)
	call(t.Context(), conn, withdraw, "second", request).checkRefused(t, dedupe.InFlight)
	call(t.Context(), conn, withdraw, "third", request).checkRefused(t, dedupe.Locked)
	close(running.leave)
	receive(t, second, "the second's answer").check(t, 2, false)
	call(t.Context(), conn, withdraw, "third", request).check(t, 3, false)
}

// A transfer locks both accounts, named by fields of its message.
func TestSeveralKeys(t *testing.T) {
	t.Parallel()
	running := newGate()
	var first atomic.Bool
	b := bank{unary: func(ctx context.Context, _ *dynamicpb.Message) (any, error) {
		if first.CompareAndSwap(false, true) {
			running.pass(ctx)
		}
		return receipt(1), nil
	}}
	guard := newSerialize(t, memstore.New(), keyfuncs.Param("id"), dedupe.WithAlso(keyfuncs.Field("to")))
	conn := b.guarded(t, grpcmw.Config{}, guard)
	done := make(chan reply, 1)
	go func() { done <- call(context.Background(), conn, withdraw, "", transfer("1", "2")) }()
	lease, _ := dedupe.LeaseFrom(receive(t, running.entered, "the first"))
	for _, key := range []string{"1", "2"} {
		if _, held := lease.FenceOf(key); !held {
			t.Errorf("%s is not held", key)
		}
	}
	for _, test := range []struct {
		from, to string
		outcome  dedupe.Outcome
	}{{"2", "1", dedupe.Locked}, {"2", "3", dedupe.Locked}, {"3", "1", dedupe.Locked}, {"3", "4", dedupe.Proceed}, {"3", "", dedupe.KeyMissing}} {
		got := call(t.Context(), conn, withdraw, "", transfer(test.from, test.to))
		if test.outcome == dedupe.Proceed {
			got.check(t, 1, false)
		} else {
			got.checkRefused(t, test.outcome)
		}
	}
	close(running.leave)
	receive(t, done, "the first's answer").check(t, 1, false)
	call(t.Context(), conn, withdraw, "", transfer("2", "1")).check(t, 1, false)
}

// Of 50 duplicates at once one runs, and all get its answer.
func TestParallelDuplicates(t *testing.T) {
	t.Parallel()
	const senders = 50
	b, runs := counting()
	store := memstore.New()
	conns := []*grpc.ClientConn{
		b.guarded(t, grpcmw.Config{}, newOnce(t, store, dedupe.WithWait(patience))),
		b.guarded(t, grpcmw.Config{}, newOnce(t, store, dedupe.WithWait(patience))),
	}
	var replayed atomic.Int64
	var senderGroup sync.WaitGroup
	for i := range senders {
		senderGroup.Go(func() {
			got := call(context.Background(), conns[i%len(conns)], withdraw, "k", transfer("7", ""))
			got.check(t, 1, got.replayed())
			if got.replayed() {
				replayed.Add(1)
			}
		})
	}
	senderGroup.Wait()
	if runs.Load() != 1 || replayed.Load() != senders-1 {
		t.Errorf("ran %d times, replayed %d times", runs.Load(), replayed.Load())
	}
}

// Writers of one account take turns, through whichever method.
func TestParallelWriters(t *testing.T) {
	t.Parallel()
	const writers = 20
	balance := 0 // the race detector watches over it
	b := bank{unary: func(context.Context, *dynamicpb.Message) (any, error) {
		read := balance
		runtime.Gosched()
		balance = read + 1
		return receipt(1), nil
	}}
	guard := newSerialize(t, memstore.New(), keyfuncs.Param("id"), dedupe.WithWait(patience))
	conn := b.serve(t, grpc.UnaryInterceptor(grpcmw.UnaryServerInterceptor(grpcmw.Methods{withdraw: {guard}, deposit: {guard}})))
	var writerGroup sync.WaitGroup
	for i := range writers {
		method := []string{withdraw, deposit}[i%2]
		writerGroup.Go(func() { call(context.Background(), conn, method, "", transfer("7", "")).check(t, 1, false) })
	}
	writerGroup.Wait()
	if balance != writers {
		t.Errorf("balance %d", balance)
	}
}

// recovery is what recovery middleware does.
func recovery(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = status.Error(codes.Internal, "panic")
		}
	}()
	return handler(ctx, request)
}

// A panic frees the keys, wherever it is recovered from.
func TestPanic(t *testing.T) {
	t.Parallel()
	for name, chain := range map[string]func(guards grpc.UnaryServerInterceptor) []grpc.UnaryServerInterceptor{
		"inside": func(guards grpc.UnaryServerInterceptor) []grpc.UnaryServerInterceptor {
			return []grpc.UnaryServerInterceptor{guards, recovery}
		},
		"outside": func(guards grpc.UnaryServerInterceptor) []grpc.UnaryServerInterceptor {
			return []grpc.UnaryServerInterceptor{recovery, guards}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New()
			var runs atomic.Int64
			b := bank{unary: func(context.Context, *dynamicpb.Message) (any, error) {
				if run := runs.Add(1); run > 1 {
					return receipt(run), nil
				}
				panic("fault")
			}}
			guards := newUnary(t, grpcmw.Config{KeepMetadata: []string{"x-a"}}, grpcmw.Methods{
				withdraw: {newOnce(t, store), newSerialize(t, store, keyfuncs.Param("id"))},
			})
			conn := b.serve(t, grpc.ChainUnaryInterceptor(chain(guards)...))
			if got := pay(t, conn); status.Code(got.err) != codes.Internal {
				t.Errorf("got %v", got.err)
			}
			pay(t, conn).check(t, 2, false)
			pay(t, conn).check(t, 2, true)
		})
	}
}

func TestGoexit(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	interceptor := newUnary(t, grpcmw.Config{}, grpcmw.Methods{withdraw: {newOnce(t, store), newSerialize(t, store, keyfuncs.Param("id"))}})
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(keyHeader, "k"))
	info := &grpc.UnaryServerInfo{FullMethod: withdraw}
	exited := make(chan bool, 1)
	go func() {
		returned := false
		defer func() { exited <- !returned && recover() == nil }()
		_, _ = interceptor(ctx, transfer("7", ""), info, func(context.Context, any) (any, error) {
			runtime.Goexit()
			return nil, nil
		})
		returned = true
	}()
	if !receive(t, exited, "the end of the goroutine") {
		t.Error("it did not exit")
	}
	got, err := interceptor(ctx, transfer("7", ""), info, func(context.Context, any) (any, error) { return receipt(2), nil })
	if err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// rewrite is an interceptor that makes new errors of those it sees.
func rewrite(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	response, err := handler(ctx, request)
	if err != nil {
		err = status.Error(status.Code(err), "rewritten")
	}
	return response, err
}

// What an interceptor further in refuses is not the handler's answer, and is not kept further out.
func TestRefusalIsNotKept(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{2, 3} {
		b, _ := counting()
		var chain []grpc.UnaryServerInterceptor
		for i := range depth - 1 { // keys of their own: each is asked
			guard, err := dedupe.Once(memstore.New(), keyfuncs.Const(string(rune('a'+i))), keyfuncs.Header(keyHeader))
			if err != nil {
				t.Fatal(err)
			}
			chain = append(chain, newUnary(t, grpcmw.Config{}, grpcmw.Methods{withdraw: {guard}}), rewrite)
		}
		var open atomic.Bool
		last := newSerialize(t, memstore.New(), func(dedupe.Request) (string, error) {
			if open.Load() {
				return "7", nil
			}
			return "", &dedupe.KeyError{Source: "account", Problem: "is closed"}
		})
		chain = append(chain, newUnary(t, grpcmw.Config{}, grpcmw.Methods{withdraw: {last}}))
		conn := b.serve(t, grpc.ChainUnaryInterceptor(chain...))
		if got := pay(t, conn); status.Code(got.err) != codes.InvalidArgument || got.replayed() {
			t.Errorf("got %v, replayed %t", got.err, got.replayed())
		}
		open.Store(true)
		pay(t, conn).check(t, 1, false)
		pay(t, conn).check(t, 1, true)
	}
}

// A handler that runs into a refusal of another method has run.
func TestRefusalOfAnotherMethod(t *testing.T) {
	t.Parallel()
	inner := newUnary(t, grpcmw.Config{}, grpcmw.Methods{deposit: {newSerialize(t, memstore.New(), keyfuncs.Param("to"))}})
	var runs atomic.Int64
	b := bank{unary: func(ctx context.Context, request *dynamicpb.Message) (any, error) {
		runs.Add(1)
		return inner(ctx, request, &grpc.UnaryServerInfo{FullMethod: deposit}, nil)
	}}
	conn := b.guarded(t, grpcmw.Config{}, newOnce(t, memstore.New()))
	for _, replayed := range []bool{false, true} {
		got := call(t.Context(), conn, withdraw, "k", transfer("7", ""))
		if status.Code(got.err) != codes.InvalidArgument || got.replayed() != replayed || runs.Load() != 1 {
			t.Errorf("got %v, replayed %t, after %d runs", got.err, got.replayed(), runs.Load())
		}
	}
}

// The same guard in two interceptors holds once, and metadata is kept once.
func TestGuardTwice(t *testing.T) {
	t.Parallel()
	guard := newOnce(t, memstore.New())
	config := grpcmw.Config{KeepMetadata: []string{"x-balance"}}
	b := bank{unary: func(ctx context.Context, _ *dynamicpb.Message) (any, error) {
		return receipt(1), grpc.SetHeader(ctx, metadata.Pairs("x-balance", "90"))
	}}
	conn := b.serve(t, grpc.ChainUnaryInterceptor(
		newUnary(t, config, grpcmw.Methods{"/bank.v1.Bank/*": {guard}}),
		newUnary(t, config, grpcmw.Methods{withdraw: {guard}}),
	))
	for _, replayed := range []bool{false, true} {
		got := pay(t, conn)
		got.check(t, 1, replayed)
		if values := got.header.Get("x-balance"); len(values) != 1 || values[0] != "90" {
			t.Errorf("header %q", values)
		}
	}
}

// A replay further in is the answer further out: with its metadata, and without its mark.
func TestReplayIsKept(t *testing.T) {
	t.Parallel()
	for name, chain := range map[string]func(config grpcmw.Config, outer, inner *dedupe.Guard) []grpc.UnaryServerInterceptor{
		"one interceptor": func(config grpcmw.Config, outer, inner *dedupe.Guard) []grpc.UnaryServerInterceptor {
			return []grpc.UnaryServerInterceptor{newUnary(t, config, grpcmw.Methods{withdraw: {outer, inner}})}
		},
		"two interceptors": func(config grpcmw.Config, outer, inner *dedupe.Guard) []grpc.UnaryServerInterceptor {
			return []grpc.UnaryServerInterceptor{
				newUnary(t, config, grpcmw.Methods{withdraw: {outer}}), newUnary(t, config, grpcmw.Methods{withdraw: {inner}}),
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outer := newOnce(t, memstore.New())
			inner, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, keyfuncs.Param("id"))
			if err != nil {
				t.Fatal(err)
			}
			var runs atomic.Int64
			b := bank{unary: func(ctx context.Context, _ *dynamicpb.Message) (any, error) {
				return receipt(runs.Add(1)), grpc.SetHeader(ctx, metadata.Pairs("x-balance", "90"))
			}}
			config := grpcmw.Config{KeepMetadata: []string{"x-balance"}}
			conn := b.serve(t, grpc.ChainUnaryInterceptor(chain(config, outer, inner)...))
			for _, test := range []struct {
				key      string
				replayed bool
			}{{"a", false}, {"b", true}, {"b", true}, {"a", true}} {
				got := call(t.Context(), conn, withdraw, test.key, transfer("7", ""))
				got.check(t, 1, test.replayed)
				if values := got.header.Get("x-balance"); len(values) != 1 {
					t.Errorf("%s: header %q", test.key, values)
				}
			}
		})
	}
}

// The handler's context carries the lease, and is cancelled when that is lost.
func TestLease(t *testing.T) {
	t.Parallel()
	store := &changing{Store: memstore.New(), extended: func() error { return dedupe.ErrLeaseLost }}
	guard := newSerialize(t, store, keyfuncs.Param("id"))
	b := bank{unary: func(ctx context.Context, _ *dynamicpb.Message) (any, error) {
		lease, held := guard.Lease(ctx)
		if !held || lease.Fence() == 0 {
			t.Error("no lease")
		}
		if err := lease.Check(ctx); !errors.Is(err, dedupe.ErrLeaseLost) {
			t.Errorf("check: %v", err)
		}
		if !errors.Is(context.Cause(ctx), dedupe.ErrLeaseLost) {
			t.Errorf("cause: %v", context.Cause(ctx))
		}
		return nil, ctx.Err()
	}}
	if got := pay(t, b.guarded(t, grpcmw.Config{}, guard)); status.Code(got.err) != codes.Canceled {
		t.Errorf("got %v", got.err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	down := &changing{Store: memstore.New(), claimed: func(dedupe.Claimed, error) (dedupe.Claimed, error) { return dedupe.Claimed{}, errOutage }}
	for name, test := range map[string]struct {
		guard *dedupe.Guard
		key   string
	}{
		"fail open":    {newOnce(t, down, dedupe.WithFailOpen()), "k"},
		"optional key": {newOnce(t, memstore.New(), dedupe.WithOptionalKey()), ""},
		"skip":         {newOnce(t, memstore.New(), dedupe.WithSkip(func(r dedupe.Request) bool { return r.Operation() == withdraw })), "k"},
	} {
		b, _ := counting()
		conn := b.guarded(t, grpcmw.Config{}, test.guard)
		for run := range int64(2) {
			got := call(t.Context(), conn, withdraw, test.key, transfer("7", ""))
			if got.err != nil || runOf(got.message) != run+1 || got.replayed() {
				t.Errorf("%s: got %v, %v", name, got.message, got.err)
			}
		}
	}
}
