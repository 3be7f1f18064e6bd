package grpcmw_test

import (
	"context"
	"strconv"
	"testing"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// benchmark makes one call after the other, each with a key of its own unless they repeat. The
// making of keys is part of every figure, the bare one's as well.
func benchmark(b *testing.B, repeat bool, guards ...*dedupe.Guard) {
	b.Helper()
	const method = healthpb.Health_Check_FullMethodName
	interceptor := grpcmw.UnaryServerInterceptor(grpcmw.Methods{method: guards})
	info := &grpc.UnaryServerInfo{FullMethod: method}
	request := &healthpb.HealthCheckRequest{}
	response := &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}
	handler := func(context.Context, any) (any, error) { return response, nil }
	if guards == nil {
		interceptor = func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			return handler(ctx, request)
		}
	}
	key := []string{""}
	ctx := metadata.NewIncomingContext(b.Context(), metadata.MD{keyHeader: key})

	number := 1_000_000
	b.ReportAllocs()
	for b.Loop() {
		if number++; repeat {
			number = 1_000_000
		}
		key[0] = strconv.Itoa(number)
		request.Service = key[0]
		if got, err := interceptor(ctx, request, info, handler); got == nil || err != nil {
			b.Fatal(got, err)
		}
	}
}

func BenchmarkBare(b *testing.B) { benchmark(b, false) }

func BenchmarkSerialize(b *testing.B) {
	benchmark(b, false, newSerialize(b, memstore.New(), keyfuncs.Header(keyHeader)))
}

func BenchmarkSerializeByField(b *testing.B) {
	benchmark(b, false, newSerialize(b, memstore.New(), keyfuncs.Field("service")))
}

func BenchmarkOnceFresh(b *testing.B) { benchmark(b, false, newOnce(b, memstore.New())) }

func BenchmarkOnceReplay(b *testing.B) { benchmark(b, true, newOnce(b, memstore.New())) }

func BenchmarkOnceAroundSerialize(b *testing.B) {
	store := memstore.New()
	benchmark(b, false, newOnce(b, store), newSerialize(b, store, keyfuncs.Field("service")))
}
