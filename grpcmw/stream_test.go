package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// open opens a stream with the metadata account.
func open(ctx context.Context, t testing.TB, conn *grpc.ClientConn, account string) grpc.ClientStream {
	t.Helper()
	ctx = metadata.AppendToOutgoingContext(ctx, "account", account)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, count)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// echo answers each message with a receipt.
func echo(stream grpc.ServerStream) error {
	for run := int64(1); ; run++ {
		err := stream.RecvMsg(newMessage("Transfer", ""))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = stream.SendMsg(receipt(run))
		}
		if err != nil {
			return err
		}
	}
}

// exchange sends a message and waits for the answer.
func exchange(stream grpc.ClientStream) error {
	if err := stream.SendMsg(transfer("7", "")); err != nil {
		return err
	}
	return stream.RecvMsg(receipt(0))
}

func newAccount(t testing.TB, store dedupe.Store, options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	return newSerialize(t, store, keyfuncs.Header("account"), options...)
}

// A stream holds its key as long as it lives, against streams and calls.
func TestStream(t *testing.T) {
	t.Parallel()
	guard := newAccount(t, memstore.New())
	ended := make(chan struct{}, 9)
	b, _ := counting()
	b.stream = echo
	methods := grpcmw.Methods{"/bank.v1.Bank/*": {guard}}
	conn := b.serve(t, grpc.UnaryInterceptor(grpcmw.UnaryServerInterceptor(methods)), grpc.ChainStreamInterceptor(
		func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			defer func() { ended <- struct{}{} }()
			return handler(server, stream)
		}, newStream(t, grpcmw.Config{Pushback: true}, methods)))

	first := open(t.Context(), t, conn, "7")
	for range 2 {
		if err := exchange(first); err != nil {
			t.Fatal(err)
		}
	}
	second := open(t.Context(), t, conn, "7")
	refused := reply{err: second.RecvMsg(receipt(0)), trailer: second.Trailer()}
	refused.checkRefused(t, dedupe.Locked)
	checkDetails(t, refused.err, dedupe.Locked)
	checkPushback(t, refused, dedupe.Locked, true)
	receive(t, ended, "the end of the second")
	ctx := metadata.AppendToOutgoingContext(t.Context(), "account", "7")
	call(ctx, conn, withdraw, "", transfer("7", "")).checkRefused(t, dedupe.Locked)

	other := open(t.Context(), t, conn, "8")
	if err := exchange(other); err != nil {
		t.Error(err)
	}
	if err := exchange(first); err != nil {
		t.Error(err)
	}
	_ = first.CloseSend()
	if err := drain(first); err != nil {
		t.Error(err)
	}
	receive(t, ended, "the end of the first")
	call(ctx, conn, withdraw, "", transfer("7", "")).check(t, 1, false)
	if err := exchange(open(t.Context(), t, conn, "7")); err != nil {
		t.Error(err)
	}
}

func TestStreamThatIsNotNamed(t *testing.T) {
	t.Parallel()
	given := new(fakeStream)
	err := grpcmw.StreamServerInterceptor(nil)("server", given, &grpc.StreamServerInfo{FullMethod: count}, func(server any, stream grpc.ServerStream) error {
		if server != "server" || stream != grpc.ServerStream(given) {
			t.Error("another server or stream")
		}
		return io.ErrClosedPipe
	})
	if err != io.ErrClosedPipe {
		t.Errorf("error %v", err)
	}
}

// A client that hangs up ends the stream, and frees the key.
func TestStreamOfClientThatHangsUp(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 9)
	b := bank{stream: func(stream grpc.ServerStream) error {
		err := echo(stream)
		if cause := context.Cause(stream.Context()); errors.Is(cause, dedupe.ErrLeaseLost) {
			t.Errorf("cause %v", cause)
		}
		return err
	}}
	conn := b.serve(t, grpc.ChainStreamInterceptor(
		func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			err := handler(server, stream)
			ended <- err
			return err
		}, newStream(t, grpcmw.Config{}, grpcmw.Methods{count: {newAccount(t, memstore.New())}})))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := exchange(open(ctx, t, conn, "7")); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := receive(t, ended, "the end"); status.Code(err) != codes.Canceled {
		t.Errorf("it ended with %v", err)
	}
	if err := exchange(open(t.Context(), t, conn, "7")); err != nil {
		t.Error(err)
	}
}

// fakeStream is a stream that always has one more message.
type fakeStream struct {
	grpc.ServerStream

	ctx      context.Context
	received int
	sent     int
	end      error
}

func (s *fakeStream) Context() context.Context { return s.ctx }
func (s *fakeStream) SendMsg(any) error        { s.sent++; return nil }
func (s *fakeStream) SetTrailer(_ metadata.MD) {}
func (s *fakeStream) RecvMsg(any) error        { s.received++; return s.end }

// When the lease is lost, the stream's context says so, and no message gets to the handler any more;
// what it still has to say gets to the client.
func TestStreamThatLosesItsLease(t *testing.T) {
	t.Parallel()
	store := &changing{Store: memstore.New(), extended: func() error { return dedupe.ErrLeaseLost }}
	guard := newAccount(t, store)
	interceptor := newStream(t, grpcmw.Config{}, grpcmw.Methods{count: {guard}})
	for _, end := range []error{nil, io.EOF} {
		under := &fakeStream{ctx: metadata.NewIncomingContext(t.Context(), metadata.Pairs("account", "7")), end: end}
		want := errors.New("fault")
		err := interceptor(nil, under, &grpc.StreamServerInfo{FullMethod: count}, func(_ any, stream grpc.ServerStream) error {
			if err := stream.RecvMsg(nil); err != end {
				t.Errorf("received %v", err)
			}
			ctx := stream.Context()
			lease, held := guard.Lease(ctx)
			if !held {
				t.Fatal("no lease")
			}
			_ = lease.Check(ctx)
			if !errors.Is(context.Cause(ctx), dedupe.ErrLeaseLost) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			if err := stream.RecvMsg(nil); status.Code(err) != codes.Canceled {
				t.Errorf("received %v", err)
			}
			if err := stream.SendMsg(nil); err != nil || under.sent != 1 {
				t.Errorf("sent %v", err)
			}
			return want
		})
		if err != want {
			t.Errorf("error %v", err)
		}
	}
}

// A panic of a stream's handler frees the key.
func TestStreamPanic(t *testing.T) {
	t.Parallel()
	interceptor := newStream(t, grpcmw.Config{}, grpcmw.Methods{count: {newAccount(t, memstore.New())}})
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("account", "7"))
	func() {
		defer func() {
			if recover() != "fault" {
				t.Error("no panic")
			}
		}()
		_ = interceptor(nil, &fakeStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: count}, func(any, grpc.ServerStream) error { panic("fault") })
	}()
	if err := interceptor(nil, &fakeStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: count}, func(any, grpc.ServerStream) error { return nil }); err != nil {
		t.Error(err)
	}
}

// Keys can be taken from metadata, method and context, not from messages.
func TestKeysOfStreams(t *testing.T) {
	t.Parallel()
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "tenant")
	ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("account", "7"))
	for name, test := range map[string]struct {
		key   dedupe.KeyFunc
		field string
	}{
		"header":    {keyfuncs.Header("account"), ""},
		"operation": {keyfuncs.Operation, ""},
		"value":     {keyfuncs.Value(key{}), ""},
		"param":     {keyfuncs.Param("id"), "id"},
		"field":     {keyfuncs.Field("order.id"), "order.id"},
		"payload":   {keyfuncs.PayloadHash, "message"},
	} {
		interceptor := newStream(t, grpcmw.Config{}, grpcmw.Methods{count: {newSerialize(t, memstore.New(), test.key)}})
		ran := false
		err := interceptor(nil, &fakeStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: count}, func(any, grpc.ServerStream) error { ran = true; return nil })
		if test.field == "" {
			if err != nil || !ran {
				t.Errorf("%s: error %v", name, err)
			}
			continue
		}
		var problem *dedupe.KeyError
		if !errors.As(err, &problem) || ran || !slices.Contains([]string{
			"cannot be found, because the message comes only after the stream was let in", "comes only after the stream was let in",
		}, problem.Problem) {
			t.Errorf("%s: error %v", name, err)
		}
		reply{err: err}.checkRefused(t, dedupe.KeyInvalid)
	}
}

// A unary method that a proxy serves as a stream is not let past its Once.
func TestUnaryMethodServedAsStream(t *testing.T) {
	t.Parallel()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { t.Error("the handler ran"); return nil }),
		grpc.StreamInterceptor(grpcmw.StreamServerInterceptor(grpcmw.Methods{withdraw: {newOnce(t, memstore.New())}})),
	)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	if got := pay(t, dial(t, listener)); status.Code(got.err) != codes.Internal {
		t.Errorf("got %v", got.err)
	}
}

// Both interceptors may be given the same methods.
func TestSharedMethods(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	methods := grpcmw.Methods{withdraw: {newOnce(t, store)}, count: {newAccount(t, store)}}
	b := bank{unary: func(context.Context, *dynamicpb.Message) (any, error) { return receipt(1), nil }, stream: echo}
	conn := b.serve(t, grpc.UnaryInterceptor(grpcmw.UnaryServerInterceptor(methods)), grpc.StreamInterceptor(grpcmw.StreamServerInterceptor(methods)))
	pay(t, conn).check(t, 1, false)
	pay(t, conn).check(t, 1, true)
	if err := exchange(open(t.Context(), t, conn, "7")); err != nil {
		t.Error(err)
	}
}
