package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// A repeat gets the first answer, on every replica.
func TestReplay(t *testing.T) {
	t.Parallel()
	b, runs := counting()
	store := memstore.New()
	first := b.guarded(t, grpcmw.Config{}, newOnce(t, store))
	second := b.guarded(t, grpcmw.Config{}, newOnce(t, store))
	pay(t, first).check(t, 1, false)
	pay(t, first).check(t, 1, true)
	pay(t, second).check(t, 1, true)
	call(t.Context(), second, withdraw, "other", transfer("7", "8")).check(t, 2, false)
	call(t.Context(), second, withdraw, "k", transfer("9", "8")).checkRefused(t, dedupe.KeyReused)
	if runs.Load() != 2 {
		t.Errorf("ran %d times", runs.Load())
	}
}

// A key counts for one method.
func TestMethodsHaveTheirOwnKeys(t *testing.T) {
	t.Parallel()
	b, _ := counting()
	conn := b.serve(t, grpc.UnaryInterceptor(grpcmw.UnaryServerInterceptor(grpcmw.Methods{"/bank.v1.Bank/*": {newOnce(t, memstore.New())}})))
	call(t.Context(), conn, withdraw, "k", transfer("7", "")).check(t, 1, false)
	call(t.Context(), conn, deposit, "k", transfer("7", "")).check(t, 2, false)
	call(t.Context(), conn, withdraw, "k", transfer("7", "")).check(t, 1, true)
}

// richStatus has all that a status can have: several details, one of a type that nobody knows.
func richStatus(t testing.TB) *status.Status {
	t.Helper()
	details := []proto.Message{
		&errdetails.PreconditionFailure{Violations: []*errdetails.PreconditionFailure_Violation{{Type: "LIMIT", Subject: "account/7", Description: "über the limit"}}},
		&errdetails.Help{Links: []*errdetails.Help_Link{{Url: "https://bank.example"}}},
		&errdetails.Help{Links: []*errdetails.Help_Link{{Url: "https://bank.example/again"}}},
		durationpb.New(7),
	}
	s := &spb.Status{Code: int32(codes.FailedPrecondition), Message: "the limit is reached: 100 €"}
	for _, detail := range details {
		packed, err := anypb.New(detail)
		if err != nil {
			t.Fatal(err)
		}
		s.Details = append(s.Details, packed)
	}
	s.Details = append(s.Details, &anypb.Any{TypeUrl: "bank.example/nobody.Knows", Value: []byte("\x00\xff")})
	return status.FromProto(s)
}

// A kept error comes back with code, message and every detail, wrapped or not.
func TestReplayOfError(t *testing.T) {
	t.Parallel()
	rich := richStatus(t)
	wrapped := status.Convert(fmt.Errorf("withdraw: %w", rich.Err()))
	for name, test := range map[string]struct {
		err  error
		want *status.Status
	}{
		"rich":    {rich.Err(), rich},
		"wrapped": {fmt.Errorf("withdraw: %w", rich.Err()), wrapped},
		"bare":    {status.Error(codes.NotFound, ""), status.New(codes.NotFound, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int64
			b := bank{unary: func(context.Context, *dynamicpb.Message) (any, error) { runs.Add(1); return nil, test.err }}
			conn := b.guarded(t, grpcmw.Config{}, newOnce(t, memstore.New()))
			pay(t, conn).checkFailed(t, test.want, false)
			pay(t, conn).checkFailed(t, test.want, true)
			pay(t, conn).checkFailed(t, test.want, true)
			if runs.Load() != 1 {
				t.Errorf("ran %d times", runs.Load())
			}
		})
	}
}

type failure struct{ text string }

func (f *failure) Error() string { return f.text }

// Errors without a status, and those of a context, are not kept; and every error that a handler
// returns reaches interceptors outside as the same value.
func TestErrorsThatAreNotKept(t *testing.T) {
	t.Parallel()
	okay := status.New(codes.OK, "").Proto()
	for name, test := range map[string]struct {
		err  error
		code codes.Code
	}{
		"plain":            {&failure{"plain"}, codes.Unknown},
		"canceled":         {context.Canceled, codes.Canceled},
		"deadline":         {fmt.Errorf("select: %w", context.DeadlineExceeded), codes.DeadlineExceeded},
		"internal":         {status.Error(codes.Internal, "x"), codes.Internal},
		"error that is OK": {okError{status.FromProto(okay)}, codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, once := range []bool{true, false} {
				var runs atomic.Int64
				guard := newSerialize(t, memstore.New(), keyfuncs.Param("id"))
				if once {
					guard = newOnce(t, memstore.New())
				}
				b := bank{unary: func(context.Context, *dynamicpb.Message) (any, error) { runs.Add(1); return nil, test.err }}
				outside := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
					response, err := handler(ctx, request)
					if err != test.err {
						t.Errorf("outside sees %v", err)
					}
					return response, err
				}
				config := grpcmw.Config{Keep: func(code codes.Code) bool {
					if code != test.code {
						t.Errorf("asked about %v", code)
					}
					return false
				}}
				conn := b.serve(t, grpc.ChainUnaryInterceptor(outside, newUnary(t, config, grpcmw.Methods{withdraw: {guard}})))
				for want := range int64(2) {
					if got := pay(t, conn); status.Code(got.err) != test.code || runs.Load() != want+1 || got.replayed() {
						t.Errorf("got %v after %d runs, replayed %t", got.err, runs.Load(), got.replayed())
					}
				}
			}
		})
	}
}

type okError struct{ s *status.Status }

func (okError) Error() string                { return "not an error" }
func (e okError) GRPCStatus() *status.Status { return e.s }

// A response beside an error is no answer.
func TestErrorWithResponse(t *testing.T) {
	t.Parallel()
	want := status.New(codes.NotFound, "no account")
	b := bank{unary: func(context.Context, *dynamicpb.Message) (any, error) { return receipt(1), want.Err() }}
	conn := b.guarded(t, grpcmw.Config{}, newOnce(t, memstore.New()))
	pay(t, conn).checkFailed(t, want, false)
	pay(t, conn).checkFailed(t, want, true)
}

// Fields that this version does not know are replayed too.
func TestReplayOfUnknownFields(t *testing.T) {
	t.Parallel()
	unknown := []byte("\x98\x06\x07") // field 99 is 7
	b := bank{unary: func(context.Context, *dynamicpb.Message) (any, error) {
		response := receipt(1)
		response.SetUnknown(unknown)
		return response, nil
	}}
	conn := b.guarded(t, grpcmw.Config{}, newOnce(t, memstore.New()))
	for _, replayed := range []bool{false, true} {
		got := pay(t, conn)
		got.check(t, 1, replayed)
		if !slices.Equal(got.message.GetUnknown(), unknown) {
			t.Errorf("unknown fields %x", got.message.GetUnknown())
		}
	}
}

// Metadata on the list comes back, in all its values and bytes, whichever way it was set; other does
// not.
func TestReplayOfMetadata(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func() (any, error){
		"response": func() (any, error) { return receipt(1), nil },
		"nothing":  func() (any, error) { return nil, nil },
		"error":    func() (any, error) { return nil, status.Error(codes.NotFound, "no account") },
	} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprint(name, early), func(t *testing.T) {
				t.Parallel()
				b := bank{unary: func(ctx context.Context, _ *dynamicpb.Message) (any, error) {
					_ = grpc.SetHeader(ctx, metadata.Pairs("X-Balance", "90", "x-balance", "80", "x-other", "1"))
					_ = grpc.SetHeader(ctx, metadata.Pairs("x-balance", "70"))
					if early {
						_ = grpc.SendHeader(ctx, metadata.Pairs("receipt-bin", "\x00\xff"))
						if grpc.SetHeader(ctx, metadata.Pairs("x-balance", "too late")) == nil {
							t.Error("a header after the header")
						}
					} else {
						_ = grpc.SetHeader(ctx, metadata.Pairs("receipt-bin", "\x00\xff"))
					}
					_ = grpc.SetTrailer(ctx, metadata.Pairs("x-cost", "7", "x-other", "1"))
					return answer()
				}}
				config := grpcmw.Config{KeepMetadata: []string{"X-Balance", "receipt-bin", "x-cost"}}
				conn := b.serve(t, grpc.ChainUnaryInterceptor(
					func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
						_ = grpc.SetHeader(ctx, metadata.Pairs("x-balance", "outer"))
						return handler(ctx, request)
					}, newUnary(t, config, grpcmw.Methods{withdraw: {newOnce(t, memstore.New())}})))
				for _, replayed := range []bool{false, true} {
					got := pay(t, conn)
					if got.replayed() != replayed {
						t.Errorf("replayed: %t", got.replayed())
					}
					other := 1
					if replayed {
						other = 0
					}
					if !slices.Equal(got.header.Get("x-balance"), []string{"outer", "90", "80", "70"}) ||
						!slices.Equal(got.header.Get("receipt-bin"), []string{"\x00\xff"}) ||
						!slices.Equal(got.trailer.Get("x-cost"), []string{"7"}) ||
						len(got.header.Get("x-other")) != other || len(got.trailer.Get("x-other")) != other ||
						len(got.trailer.Get("x-balance")) != 0 || len(got.header.Get("x-cost")) != 0 {
						t.Errorf("replayed %t: header %v, trailer %v", replayed, got.header, got.trailer)
					}
				}
			})
		}
	}
}

// Without a list, handlers keep gRPC's own stream, on which some of its functions insist.
func TestHandlerHasItsStream(t *testing.T) {
	t.Parallel()
	b := bank{unary: func(ctx context.Context, _ *dynamicpb.Message) (any, error) {
		_, err := grpc.ClientSupportedCompressors(ctx)
		return receipt(1), err
	}}
	pay(t, b.guarded(t, grpcmw.Config{}, newOnce(t, memstore.New()))).check(t, 1, false)
}

// The answer is saved when the client gets it, and a client that hangs up does not lose it.
func TestAnswerIsSavedFirst(t *testing.T) {
	t.Parallel()
	for name, hangUp := range map[string]func(cancel context.CancelFunc){
		"waits":    func(context.CancelFunc) {},
		"hangs up": func(cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running := newGate()
			saved := make(chan struct{})
			store := &changing{Store: memstore.New(), complete: func([]byte) { close(saved) }}
			b := bank{unary: func(ctx context.Context, _ *dynamicpb.Message) (any, error) {
				running.pass(ctx)
				return receipt(1), nil
			}}
			returned := make(chan struct{})
			conn := b.serve(t, grpc.ChainUnaryInterceptor(
				func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
					defer func() {
						select {
						case <-saved:
						default:
							t.Error("the answer is on its way and not saved")
						}
						select {
						case <-returned:
						default:
							close(returned)
						}
					}()
					return handler(ctx, request)
				}, newUnary(t, grpcmw.Config{}, grpcmw.Methods{withdraw: {newOnce(t, store)}})))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answered := make(chan reply, 1)
			go func() { answered <- call(ctx, conn, withdraw, "k", transfer("7", "8")) }()
			inside := receive(t, running.entered, "the handler")
			hangUp(cancel)
			if name == "hangs up" {
				receive(t, inside.Done(), "the client's leaving")
				if errors.Is(context.Cause(inside), dedupe.ErrLeaseLost) {
					t.Error("the lease was lost")
				}
			}
			close(running.leave)
			receive(t, answered, "an answer")
			receive(t, returned, "the end of the call")
			pay(t, conn).check(t, 1, true)
		})
	}
}

// expiring is a context whose deadline passes when over is closed.
type expiring struct {
	context.Context

	over chan struct{}
}

func (c expiring) Done() <-chan struct{} { return c.over }

func (c expiring) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A deadline that passes under the handler: its verdict counts, and its giving up does not.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for _, givesUp := range []bool{false, true} {
		over := make(chan struct{})
		var runs atomic.Int64
		b := bank{unary: func(ctx context.Context, _ *dynamicpb.Message) (any, error) {
			run := runs.Add(1)
			if run == 1 {
				close(over)
				<-ctx.Done()
				if givesUp {
					return nil, ctx.Err()
				}
			}
			return receipt(run), nil
		}}
		conn := b.serve(t, grpc.ChainUnaryInterceptor(
			func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				if runs.Load() == 0 {
					ctx = expiring{ctx, over}
				}
				return handler(ctx, request)
			}, newUnary(t, grpcmw.Config{}, grpcmw.Methods{withdraw: {newOnce(t, memstore.New())}})))
		if first := pay(t, conn); givesUp {
			if status.Code(first.err) != codes.DeadlineExceeded {
				t.Errorf("got %v", first.err)
			}
			pay(t, conn).check(t, 2, false)
		} else {
			first.check(t, 1, false)
			pay(t, conn).check(t, 1, true)
		}
	}
}
