package httpmw_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/httpmw"
)

// The Go on the page is that of the examples below, line by line.
func TestClientsCode(t *testing.T) {
	source := unindented(textOf(t, "pages_code_test.go"))
	blocks := strings.Split(textOf(t, forClients), "```go\n")[1:]
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(source, unindented(code)) {
			t.Errorf("no example here has the lines\n%s", code)
		}
	}
}

type storedWithdrawal struct {
	Key, URL string
	Body     []byte
}

// withdrawStored goes on until there is an answer.
func withdrawStored(ctx context.Context, withdrawal storedWithdrawal) (*http.Response, error) {
	client := &http.Client{Transport: httpmw.NewTransport(nil), Timeout: time.Minute}

	ctx = dedupe.ContextWithKey(ctx, withdrawal.Key) // stored before the first attempt
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, withdrawal.URL, bytes.NewReader(withdrawal.Body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err == nil && (response.StatusCode < 500 || httpmw.Replayed(response)) {
			return response, nil // an answer: httpmw.Replayed tells whether it is an earlier one
		}
		if err == nil {
			_ = response.Body.Close()
		}
		select {
		case <-time.After(rand.N(pause)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// A client that goes on over a lost answer and a crash of its own: the key is stored.
func Example_storedKey() {
	bank := flakyBank()
	defer bank.Close()
	stored := storedWithdrawal{"0198c0de-7f3a-7c11-9d55-3b1e5f0a2c46", bank.URL, []byte(`{"amount":10}`)}
	for range 2 { // before the crash, and after it
		response, err := withdrawStored(context.Background(), stored)
		if err != nil {
			fmt.Println(err)
			return
		}
		answer, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		fmt.Printf("%s, replayed %t\n", answer, httpmw.Replayed(response))
	}
	// Output:
	// withdrawn, 90 left, replayed true
	// withdrawn, 90 left, replayed true
}

type storedPayment struct {
	Key     string
	Request *healthpb.HealthCheckRequest
}

func payStored(ctx context.Context, target string, credentials credentials.TransportCredentials, retrying grpc.UnaryClientInterceptor, payment storedPayment) (bool, error) {
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(credentials),
		grpc.WithChainUnaryInterceptor(grpcmw.UnaryClientInterceptor(), retrying))
	if err != nil {
		return false, err
	}
	defer conn.Close()

	var header metadata.MD
	ctx = dedupe.ContextWithKey(ctx, payment.Key) // stored before the first attempt
	_, err = healthpb.NewHealthClient(conn).Check(ctx, payment.Request, grpc.Header(&header))
	return grpcmw.Replayed(header), err
}

// paying is a service that counts how often it runs; the one of gRPC's libraries stands in for it.
type paying struct {
	healthpb.UnimplementedHealthServer

	runs int
}

func (p *paying) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	p.runs++
	return &healthpb.HealthCheckResponse{}, nil
}

func TestClientsCodeOverGRPC(t *testing.T) {
	guard := newOnce(t, memstore.New())
	server := grpc.NewServer(grpc.UnaryInterceptor(grpcmw.UnaryServerInterceptor(grpcmw.Methods{
		healthpb.Health_Check_FullMethodName: {guard},
	})))
	service := &paying{}
	healthpb.RegisterHealthServer(server, service)
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)

	twice := func(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		_ = invoke(ctx, method, request, response, conn, options...)
		return invoke(ctx, method, request, response, conn, options...)
	}
	for range 2 { // before a crash, and after it
		replayed, err := payStored(t.Context(), listener.Addr().String(), insecure.NewCredentials(), twice,
			storedPayment{"k", &healthpb.HealthCheckRequest{Service: "7"}})
		if err != nil || !replayed || service.runs != 1 {
			t.Errorf("replayed %t, %d runs, error %v", replayed, service.runs, err)
		}
	}
}

func unindented(code string) string {
	return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(code, "")
}
