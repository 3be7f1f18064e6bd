package worker

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/interlock-go/interlock/grpcmw"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

const (
	grpcMethod    = healthpb.Health_Check_FullMethodName
	grpcKeyHeader = "idempotency-key"
	grpcBuffer    = 1 << 20
)

// healthService stands for any unary method: the health service is the one whose messages come with
// gRPC. Its answer does not carry the service's bytes.
type healthService struct {
	healthpb.UnimplementedHealthServer

	service *service
}

func (h healthService) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	h.service.run()
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// serveGRPC returns clients of a server on an in-memory connection that all of them share.
func serveGRPC(g *guarding, s *service, count int) ([]client, func() error, error) {
	var interceptors []grpc.ServerOption
	switch {
	case g.floor != nil:
		interceptors = append(interceptors, grpc.UnaryInterceptor(g.intercept))
	case g.guards != nil:
		interceptors = append(interceptors, grpc.UnaryInterceptor(grpcmw.UnaryServerInterceptor(grpcmw.Methods{grpcMethod: g.guards})))
	}
	server := grpc.NewServer(interceptors...)
	healthpb.RegisterHealthServer(server, healthService{service: s})
	listener := bufconn.Listen(grpcBuffer)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	conn, err := grpc.NewClient("passthrough:///bench",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		server.Stop()
		return nil, nil, errors.Join(err, <-served)
	}
	clients := make([]client, count)
	for i := range clients {
		clients[i] = grpcClient{healthpb.NewHealthClient(conn)}
	}
	return clients, func() error {
		err := conn.Close()
		server.Stop()
		return errors.Join(err, <-served)
	}, nil
}

func (g *guarding) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	keys := metadata.ValueFromIncomingContext(ctx, grpcKeyHeader)
	if len(keys) != 1 {
		return nil, status.Error(codes.InvalidArgument, "no key")
	}
	if held := g.around(ctx, keys[0], func() { response, err = handler(ctx, request) }); held != nil {
		return nil, status.Error(codes.Unavailable, held.Error())
	}
	return response, err
}

type grpcClient struct{ client healthpb.HealthClient }

func (c grpcClient) send(ctx context.Context, key string) (replayed bool, err error) {
	var header metadata.MD
	response, err := c.client.Check(metadata.AppendToOutgoingContext(ctx, grpcKeyHeader, key), &healthpb.HealthCheckRequest{Service: "bank"}, grpc.Header(&header))
	if err != nil {
		return false, err
	}
	if response.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return false, fmt.Errorf("answered %v", response.GetStatus())
	}
	return grpcmw.Replayed(header), nil
}
