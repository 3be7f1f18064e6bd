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

// The examples guard a service that every gRPC module has. Think of payments.
type payments struct {
	healthpb.UnimplementedHealthServer

	runs int
}

func (p *payments) Check(ctx context.Context, request *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	p.runs++
	if request.GetService() == "" {
		return nil, status.Errorf(codes.NotFound, "no account, says run %d", p.runs)
	}
	_ = grpc.SetHeader(ctx, metadata.Pairs("x-run", fmt.Sprint(p.runs)))
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// serve returns a client of the service behind an interceptor, and prints what it gets.
func serve(interceptor grpc.UnaryServerInterceptor) (send func(key, account string), stop func()) {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.UnaryInterceptor(interceptor))
	healthpb.RegisterHealthServer(server, &payments{})
	go func() { _ = server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:payments", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		log.Fatal(err)
	}
	return func(key, account string) {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "idempotency-key", key)
		var header metadata.MD
		response, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: account}, grpc.Header(&header))
		fmt.Println(response.GetStatus(), status.Code(err), status.Convert(err).Message(), "| run", header.Get("x-run"), "replayed", header.Get("idempotent-replayed"))
	}, server.Stop
}

// A call that is sent twice runs once, and its answer is given twice; and two calls on one account
// never run at the same time.
func ExampleUnaryServerInterceptor() {
	store := memstore.New() // in a service with replicas: redisstore.New(client)
	once, err := dedupe.Once(store, keyfuncs.Anyone, keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	account, err := dedupe.Serialize(store, "account", keyfuncs.Field("service"))
	if err != nil {
		log.Fatal(err)
	}
	send, stop := serve(grpcmw.UnaryServerInterceptor(grpcmw.Methods{
		healthpb.Health_Check_FullMethodName: {once, account},
	}))
	defer stop()

	send("a", "7")
	send("a", "7")
	send("a", "8")
	send("b", "")
	// Output:
	// SERVING OK  | run [1] replayed []
	// SERVING OK  | run [] replayed [true]
	// UNKNOWN FailedPrecondition the key was used before with another payload | run [] replayed []
	// UNKNOWN InvalidArgument the request has no key | run [] replayed []
}

// Metadata of the service's own is replayed when it is named, and so are errors that are verdicts on
// the request.
func ExampleConfig_Unary() {
	once, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	config := grpcmw.Config{
		MaxAnswer:    64 << 10,
		KeepMetadata: []string{"x-run"},
	}
	interceptor, err := config.Unary(grpcmw.Methods{"/grpc.health.v1.Health/*": {once}})
	if err != nil {
		log.Fatal(err)
	}
	send, stop := serve(interceptor)
	defer stop()

	send("a", "7")
	send("a", "7")
	send("b", "")
	send("b", "")
	// Output:
	// SERVING OK  | run [1] replayed []
	// SERVING OK  | run [1] replayed [true]
	// UNKNOWN NotFound no account, says run 2 | run [] replayed []
	// UNKNOWN NotFound no account, says run 2 | run [] replayed [true]
}

// Of a stream there is no single answer to be kept, and that is said when the server starts.
func ExampleConfig_Stream() {
	once, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	_, err = grpcmw.Config{}.Stream(grpcmw.Methods{healthpb.Health_Watch_FullMethodName: {once}})
	fmt.Println(err)
	// Output:
	// grpcmw: "/grpc.health.v1.Health/Watch": guard 1 is a Once, and the method is a stream: there is no single answer to be kept; leave it out
}

// A key function of one's own is tested with a request as the guards see it.
func ExampleNewRequest() {
	key := func(r dedupe.Request) (string, error) {
		id, err := r.Field("service")
		return "account " + id, err
	}
	fmt.Println(key(grpcmw.NewRequest(context.Background(), healthpb.Health_Check_FullMethodName, &healthpb.HealthCheckRequest{Service: "7"})))
	// Output: account 7 <nil>
}
