package grpcmw_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// losing loses the first answer of a server on its way.
func losing() grpc.UnaryServerInterceptor {
	lost := false
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		response, err := handler(ctx, request)
		if !lost {
			lost = true
			return nil, status.Error(codes.Unavailable, "the answer is lost")
		}
		return response, err
	}
}

// retrying stands for any of the many that send a call again after UNAVAILABLE.
func retrying(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := invoke(ctx, method, request, response, conn, options...)
	if status.Code(err) == codes.Unavailable {
		err = invoke(ctx, method, request, response, conn, options...)
	}
	return err
}

// payOver pays once, through a client's interceptors, and returns how often the payment ran.
func payOver(ctx context.Context, interceptors ...grpc.UnaryClientInterceptor) string {
	once, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	guard := grpcmw.UnaryServerInterceptor(grpcmw.Methods{healthpb.Health_Check_FullMethodName: {once}})
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(losing(), guard))
	service := &payments{}
	healthpb.RegisterHealthServer(server, service)
	listener := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	conn, err := grpc.NewClient("passthrough:payments", grpc.WithChainUnaryInterceptor(interceptors...),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	var header metadata.MD
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "7"}, grpc.Header(&header))
	return fmt.Sprintf("runs %d, replayed %t, error %v", service.runs, grpcmw.Replayed(header), err)
}

// The interceptor belongs outside what sends calls again. Below it, each attempt gets a key of its
// own, and the payment runs twice. Where the order cannot be had, a key in the context helps.
func ExampleUnaryClientInterceptor() {
	ctx := context.Background()
	fmt.Println("outside:", payOver(ctx, grpcmw.UnaryClientInterceptor(), retrying))
	fmt.Println("below:", payOver(ctx, retrying, grpcmw.UnaryClientInterceptor()))

	ctx = dedupe.ContextWithKey(ctx, "0198c0de-7f3a-7c11-9d55-3b1e5f0a2c46")
	fmt.Println("below, with a key:", payOver(ctx, retrying, grpcmw.UnaryClientInterceptor()))
	// Output:
	// outside: runs 1, replayed true, error <nil>
	// below: runs 2, replayed false, error <nil>
	// below, with a key: runs 1, replayed true, error <nil>
}
