package connect

import (
	"context"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"github.com/interlock-go/interlock/grpcmw"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Interceptor returns an interceptor that takes each call of a method through its guards before the
// handler runs. It is for handlers; clients it lets pass. The error names each bad method and guard.
func Interceptor(methods grpcmw.Methods) (connect.Interceptor, error) {
	unary, err := grpcmw.Config{}.Unary(methods)
	if err != nil {
		return nil, err
	}
	stream, err := grpcmw.Config{}.Stream(methods)
	if err != nil {
		return nil, err
	}
	return &interceptor{unary, stream}, nil
}

type interceptor struct {
	unary  grpc.UnaryServerInterceptor
	stream grpc.StreamServerInterceptor
}

// WrapUnary implements connect.Interceptor.
func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if request.Spec().IsClient {
			return next(ctx, request)
		}
		var (
			ran      bool
			response connect.AnyResponse
			failed   error
		)
		info := &grpc.UnaryServerInfo{FullMethod: request.Spec().Procedure}
		message, err := i.unary(withMetadata(ctx, request.Header()), request.Any(), info, func(ctx context.Context, _ any) (any, error) {
			ran = true
			if response, failed = next(ctx, request); failed != nil {
				return nil, toStatus(failed)
			}
			return response.Any(), nil
		})
		switch {
		case ran:
			return response, failed
		case err != nil:
			failure := fromStatus(err)
			if refusalIn(err) == nil {
				markReplayed(failure.Meta())
			}
			return nil, failure
		default:
			return newReplay(message), nil
		}
	}
}

// WrapStreamingHandler implements connect.Interceptor.
func (i *interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		var (
			ran    bool
			failed error
		)
		info := &grpc.StreamServerInfo{FullMethod: conn.Spec().Procedure}
		err := i.stream(nil, stream{ctx: withMetadata(ctx, conn.RequestHeader())}, info, func(_ any, s grpc.ServerStream) error {
			ran = true
			failed = next(s.Context(), conn)
			return failed
		})
		if ran || err == nil {
			return failed
		}
		return fromStatus(err)
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (*interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// withMetadata returns ctx with headers where grpcmw looks for them.
func withMetadata(ctx context.Context, header http.Header) context.Context {
	md := make(metadata.MD, len(header)+1)
	for name, values := range header {
		md[strings.ToLower(name)] = values
	}
	md[":authority"] = header["Host"] // Connect has put it there
	return metadata.NewIncomingContext(ctx, md)
}

// stream is as much of a gRPC stream as grpcmw asks for before the handler has one.
type stream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // ServerStream.Context has to return it
}

func (s stream) Context() context.Context { return s.ctx }

// replay is an answer that was kept. Its message is of the type that the method returns, but it is
// not a *connect.Response of it: interceptors further out have to go by Any.
type replay struct {
	connect.AnyResponse // the headers and trailers

	message any
}

func newReplay(message any) replay {
	r := replay{connect.NewResponse(&emptypb.Empty{}), message}
	markReplayed(r.Header())
	return r
}

// Any implements connect.AnyResponse.
func (r replay) Any() any { return r.message }

func markReplayed(header http.Header) { header.Set("Idempotent-Replayed", "true") }
