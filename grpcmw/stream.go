package grpcmw

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/dedupe"
)

// StreamServerInterceptor returns an interceptor that takes each stream of a method through its
// guards before the handler runs. It has every default of [Config], and panics where [Config.Stream]
// returns an error.
func StreamServerInterceptor(methods Methods) grpc.StreamServerInterceptor {
	return must(Config{}.Stream(methods))
}

// Stream is [StreamServerInterceptor] with the configuration. The error names each bad field, method
// and guard. A Once is one, for a whole service too, unless the method is known to be unary: such a
// method may be named in Methods that both kinds of interceptor share.
func (c Config) Stream(methods Methods) (grpc.StreamServerInterceptor, error) {
	i, err := c.build(methods, func(guard *dedupe.Guard, m *method) string {
		switch {
		case !guard.KeepsAnswers(), m != nil && m.unary():
			return ""
		case m != nil && m.streaming():
			return onceOnStream
		default:
			return "is a Once, and may be met by a stream, of which there is no single answer to be kept; name methods that are known to be unary, or give it to the unary interceptor only"
		}
	})
	if err != nil {
		return nil, err
	}
	return i.stream, nil
}

// errOnceStream is for a unary method that a proxy serves as a stream, as grpc.UnknownServiceHandler
// does with all of them.
var errOnceStream = status.Error(codes.Internal, "the method is guarded as a unary one and served as a stream")

func (i *interceptor) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	guards := i.guarded.guards(info.FullMethod)
	if len(guards) == 0 {
		return handler(server, stream)
	}
	if slices.ContainsFunc(guards, (*dedupe.Guard).KeepsAnswers) {
		return errOnceStream
	}
	ctx := stream.Context()
	c := &streamCall{
		request: request{ctx: ctx, config: &i.config, method: i.methods.find(info.FullMethod), stream: true},
		server:  server,
		stream:  stream,
		handler: handler,
	}
	if err := dedupe.Do(ctx, guards, c); err != nil {
		return i.refuse(err, stream.SetTrailer)
	}
	return c.err
}

// streamCall is one stream on its way through the guards.
type streamCall struct {
	request

	server  any
	stream  grpc.ServerStream
	handler grpc.StreamHandler
	err     error
}

func (c *streamCall) Invoke(ctx context.Context) {
	c.err = c.handler(c.server, &leasedStream{c.stream, ctx})
}

// No guard of a stream keeps answers, so none asks for them.

func (c *streamCall) Record() {}

func (c *streamCall) Answer(bool) ([]byte, dedupe.Verdict) { return nil, dedupe.VerdictRelease }

func (c *streamCall) Replay([]byte) error { return errAnswer }

// leasedStream is the stream of a handler that holds a lease.
type leasedStream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // ServerStream.Context has to return it
}

// Context returns the context that carries the lease.
func (s *leasedStream) Context() context.Context { return s.ctx }

// RecvMsg fails when the context is done, as that of every stream does: what comes after the lease
// was lost is not for this handler.
func (s *leasedStream) RecvMsg(message any) error {
	err := s.ServerStream.RecvMsg(message)
	if done := s.ctx.Err(); done != nil {
		return status.FromContextError(done).Err()
	}
	return err
}
