package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

const (
	withdraw  = "/bank.v1.Bank/Withdraw"
	deposit   = "/bank.v1.Bank/Deposit"
	look      = "/bank.v1.Bank/Look"
	count     = "/bank.v1.Bank/Count"
	keyHeader = "idempotency-key"
	domain    = "github.com/interlock-go/interlock"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func newOnce(t testing.TB, store dedupe.Store, options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Once(store, keyfuncs.Anyone, keyfuncs.Header(keyHeader), options...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func newSerialize(t testing.TB, store dedupe.Store, key dedupe.KeyFunc, options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Serialize(store, "account", key, options...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func newUnary(t testing.TB, config grpcmw.Config, methods grpcmw.Methods) grpc.UnaryServerInterceptor {
	t.Helper()
	interceptor, err := config.Unary(methods)
	if err != nil {
		t.Fatal(err)
	}
	return interceptor
}

func newStream(t testing.TB, config grpcmw.Config, methods grpcmw.Methods) grpc.StreamServerInterceptor {
	t.Helper()
	interceptor, err := config.Stream(methods)
	if err != nil {
		t.Fatal(err)
	}
	return interceptor
}

// bank is the service of the tests.
type bank struct {
	unary  func(ctx context.Context, request *dynamicpb.Message) (any, error)
	stream func(grpc.ServerStream) error
}

// counting is a bank that answers with the number of the run, and the counter.
func counting() (bank, *atomic.Int64) {
	var runs atomic.Int64
	return bank{unary: func(context.Context, *dynamicpb.Message) (any, error) { return receipt(runs.Add(1)), nil }}, &runs
}

// describe returns what protoc-gen-go-grpc would make of the service.
func (b bank) describe() *grpc.ServiceDesc {
	described := &grpc.ServiceDesc{ServiceName: "bank.v1.Bank", Streams: []grpc.StreamDesc{{
		StreamName: "Count", ServerStreams: true, ClientStreams: true,
		Handler: func(_ any, stream grpc.ServerStream) error { return b.stream(stream) },
	}}}
	for _, name := range []string{"Withdraw", "Deposit", "Look"} {
		info := &grpc.UnaryServerInfo{FullMethod: "/bank.v1.Bank/" + name}
		described.Methods = append(described.Methods, grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			request := newMessage("Transfer", "")
			if err := decode(request); err != nil {
				return nil, err
			}
			handler := func(ctx context.Context, request any) (any, error) {
				return b.unary(ctx, request.(*dynamicpb.Message))
			}
			if interceptor == nil {
				return handler(ctx, request)
			}
			return interceptor(ctx, request, info, handler)
		}})
	}
	return described
}

// serve serves a bank and returns a connection to it.
func (b bank) serve(t testing.TB, options ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(options...)
	server.RegisterService(b.describe(), nil)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return dial(t, listener)
}

func dial(t testing.TB, listener *bufconn.Listener, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:bank", append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// guarded serves a bank whose Withdraw is behind guards.
func (b bank) guarded(t testing.TB, config grpcmw.Config, guards ...*dedupe.Guard) *grpc.ClientConn {
	t.Helper()
	return b.serve(t, grpc.UnaryInterceptor(newUnary(t, config, grpcmw.Methods{withdraw: guards})))
}

// reply is an answer as a client sees it.
type reply struct {
	message         *dynamicpb.Message
	err             error
	header, trailer metadata.MD
}

// call calls a method with an idempotency key, unless that is "".
func call(ctx context.Context, conn *grpc.ClientConn, method, key string, request proto.Message) reply {
	if key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, keyHeader, key)
	}
	r := reply{message: receipt(0)}
	r.err = conn.Invoke(ctx, method, request, r.message, grpc.Header(&r.header), grpc.Trailer(&r.trailer))
	return r
}

// pay calls Withdraw with the key "k".
func pay(t testing.TB, conn *grpc.ClientConn) reply {
	t.Helper()
	return call(t.Context(), conn, withdraw, "k", transfer("7", "8"))
}

func (r reply) replayed() bool {
	values := r.header.Get("idempotent-replayed")
	return len(values) == 1 && values[0] == "true"
}

// check checks a success.
func (r reply) check(t testing.TB, run int64, replayed bool) {
	t.Helper()
	if r.err != nil || runOf(r.message) != run || r.replayed() != replayed {
		t.Errorf("got %v, replayed %t, error %v; want run %d, replayed %t", r.message, r.replayed(), r.err, run, replayed)
	}
}

// checkFailed checks an error of the handler.
func (r reply) checkFailed(t testing.TB, want *status.Status, replayed bool) {
	t.Helper()
	got := status.Convert(r.err)
	if !proto.Equal(got.Proto(), want.Proto()) || r.replayed() != replayed {
		t.Errorf("got %v, replayed %t; want %v, replayed %t", got.Proto(), r.replayed(), want.Proto(), replayed)
	}
}

// checkRefused checks that a guard turned the call away.
func (r reply) checkRefused(t testing.TB, outcome dedupe.Outcome) {
	t.Helper()
	info, _ := detail[*errdetails.ErrorInfo](r.err)
	if status.Code(r.err) != grpcmw.Code(outcome) || info.GetReason() != outcome.Reason() || info.GetDomain() != domain || r.replayed() {
		t.Errorf("got %v with %v; want %v", r.err, info, outcome)
	}
}

// detail returns the detail of a type in the status of an error.
func detail[T any](err error) (found T, ok bool) {
	for _, d := range status.Convert(err).Details() {
		if found, ok = d.(T); ok {
			return found, true
		}
	}
	return found, false
}

// receive returns what comes over a channel, and fails the test if nothing does.
func receive[T any](t testing.TB, from <-chan T, what string) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
	return value
}

// gate is a handler that says when it runs and waits to be let go.
type gate struct {
	entered chan context.Context
	leave   chan struct{}
}

func newGate() gate { return gate{make(chan context.Context, 100), make(chan struct{})} }

func (g gate) pass(ctx context.Context) {
	g.entered <- ctx
	<-g.leave
}

// changing is a store that changes what guards get to see of another.
type changing struct {
	dedupe.Store

	claimed  func(dedupe.Claimed, error) (dedupe.Claimed, error)
	extended func() error
	complete func(answer []byte)
}

func (s *changing) Claim(ctx context.Context, c dedupe.Claim) (dedupe.Claimed, error) {
	claimed, err := s.Store.Claim(ctx, c)
	if s.claimed != nil {
		return s.claimed(claimed, err)
	}
	return claimed, err
}

func (s *changing) Extend(ctx context.Context, h dedupe.Holder, lease time.Duration) error {
	if s.extended != nil {
		return s.extended()
	}
	return s.Store.Extend(ctx, h, lease)
}

func (s *changing) Complete(ctx context.Context, h dedupe.Holder, answer []byte, retention time.Duration) error {
	if s.complete != nil {
		s.complete(answer)
	}
	return s.Store.Complete(ctx, h, answer, retention)
}

var errOutage = errors.Join(dedupe.ErrStoreUnavailable, errors.New("dial tcp 10.0.0.7:6379: connection refused"))

// drain reads a stream to its end.
func drain(stream grpc.ClientStream) error {
	for {
		if err := stream.RecvMsg(receipt(0)); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
