package grpcmw_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
)

// arrivals notes the keys of the calls that reach a server, and when.
type arrivals struct {
	mu   sync.Mutex
	keys [][]string
	at   []time.Time
}

func (a *arrivals) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	a.mu.Lock()
	a.keys = append(a.keys, metadata.ValueFromIncomingContext(ctx, keyHeader))
	a.at = append(a.at, time.Now())
	a.mu.Unlock()
	return handler(ctx, request)
}

// check checks that n calls arrived, all of them with one and the same key, and returns it.
func (a *arrivals) check(t testing.TB, n int) string {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.keys) != n {
		t.Fatalf("%d calls arrived, want %d", len(a.keys), n)
	}
	for _, keys := range a.keys {
		if len(keys) != 1 || keys[0] != a.keys[0][0] {
			t.Fatalf("the keys are %q; want the same one each time", a.keys)
		}
	}
	return a.keys[0][0]
}

// clientOf serves a bank whose Withdraw is behind guards, and returns a connection with our
// interceptor.
func clientOf(t testing.TB, config grpcmw.ClientConfig, b bank, guards ...*dedupe.Guard) (*grpc.ClientConn, *arrivals) {
	t.Helper()
	interceptor, err := config.Unary()
	if err != nil {
		t.Fatal(err)
	}
	seen := &arrivals{}
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(seen.intercept, newUnary(t, grpcmw.Config{}, grpcmw.Methods{withdraw: guards})))
	server.RegisterService(b.describe(), nil)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return dial(t, listener, grpc.WithUnaryInterceptor(interceptor)), seen
}

// withdrawOf calls Withdraw without a key in the metadata.
func withdrawOf(ctx context.Context, conn *grpc.ClientConn) reply {
	return call(ctx, conn, withdraw, "", transfer("7", "8"))
}

// scripted is a bank that answers with one error after the other, and then with success.
func scripted(errs ...error) bank {
	var calls atomic.Int64
	return bank{unary: func(context.Context, *dynamicpb.Message) (any, error) {
		if n := calls.Add(1); int(n) <= len(errs) {
			return nil, errs[n-1]
		}
		return receipt(1), nil
	}}
}

func TestEachCallHasOneKey(t *testing.T) {
	t.Parallel()
	b, runs := counting()
	conn, seen := clientOf(t, grpcmw.ClientConfig{}, b, newOnce(t, memstore.New()))
	const calls = 20
	var sent sync.WaitGroup
	for range calls {
		sent.Go(func() {
			if got := withdrawOf(t.Context(), conn); got.err != nil || got.replayed() {
				t.Errorf("got %+v", got)
			}
		})
	}
	sent.Wait()
	found := make(map[string]bool)
	for _, keys := range seen.keys {
		key, err := uuid.Parse(strings.Join(keys, "|"))
		if err != nil || key.Version() != 7 {
			t.Errorf("the key is %q, error %v; want a UUID of version 7", keys, err)
		}
		found[key.String()] = true
	}
	if len(found) != calls || runs.Load() != calls {
		t.Errorf("%d keys, %d runs; want %d", len(found), runs.Load(), calls)
	}
}

func TestKeysOfTheCaller(t *testing.T) {
	t.Parallel()
	never := func() string { panic("there is a key") }
	made := func() string { return "made" }
	mine := func(ctx context.Context) context.Context { return dedupe.ContextWithKey(ctx, "mine") }
	same := func(ctx context.Context) context.Context { return ctx }
	for name, test := range map[string]struct {
		config grpcmw.ClientConfig
		method string
		change func(context.Context) context.Context
		want   []string
	}{
		"in the context": {grpcmw.ClientConfig{NewKey: never}, withdraw, mine, []string{"mine"}},
		"in the metadata": {grpcmw.ClientConfig{NewKey: never}, withdraw, func(ctx context.Context) context.Context {
			return metadata.AppendToOutgoingContext(dedupe.ContextWithKey(ctx, "other"), "Idempotency-Key", "mine")
		}, []string{"mine"}},
		"declined": {grpcmw.ClientConfig{NewKey: never}, withdraw, func(ctx context.Context) context.Context {
			return metadata.NewOutgoingContext(ctx, metadata.MD{keyHeader: nil})
		}, nil},
		"beside other metadata": {grpcmw.ClientConfig{NewKey: made}, withdraw, func(ctx context.Context) context.Context {
			return metadata.AppendToOutgoingContext(ctx, "x-other", "1")
		}, []string{"made"}},
		"of a safe method":               {grpcmw.ClientConfig{NewKey: never}, look, mine, nil},
		"of a safe method that is named": {grpcmw.ClientConfig{NewKey: made, Methods: []string{look}}, look, same, []string{"made"}},
		"of a service that is named":     {grpcmw.ClientConfig{NewKey: made, Methods: []string{"/bank.v1.Bank/*"}}, withdraw, same, []string{"made"}},
		"of a method that is not named":  {grpcmw.ClientConfig{NewKey: never, Methods: []string{deposit}}, withdraw, mine, nil},
		"of no method":                   {grpcmw.ClientConfig{NewKey: never, Methods: []string{}}, withdraw, mine, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, seen := clientOf(t, test.config, scripted())
			ctx := test.change(t.Context())
			before, _ := metadata.FromOutgoingContext(ctx)
			call(ctx, conn, test.method, "", transfer("7", "8")).check(t, 1, false)
			if len(seen.keys) != 1 || !slices.Equal(seen.keys[0], test.want) {
				t.Errorf("the server got the keys %q, want %q", seen.keys, test.want)
			}
			if after, _ := metadata.FromOutgoingContext(ctx); len(after) != len(before) {
				t.Errorf("the caller's metadata became %v", after)
			}
		})
	}
}

func TestNoKeyToBeHad(t *testing.T) {
	t.Parallel()
	conn, seen := clientOf(t, grpcmw.ClientConfig{NewKey: func() string { return "" }}, scripted())
	for name, ctx := range map[string]context.Context{
		"NewKey": t.Context(), "context": dedupe.ContextWithKey(t.Context(), ""),
	} {
		got := withdrawOf(ctx, conn)
		if status.Code(got.err) != codes.InvalidArgument || !strings.Contains(got.err.Error(), "key of the call is empty") {
			t.Errorf("%s: error %v", name, got.err)
		}
	}
	if len(seen.keys) > 0 {
		t.Errorf("calls arrived with %q", seen.keys)
	}
}

// gRPC's own retries are further in: they send the same key.
func TestOwnRetriesOfGRPC(t *testing.T) {
	t.Parallel()
	interceptor := grpcmw.UnaryClientInterceptor()
	var runs atomic.Int64
	seen := &arrivals{}
	lost := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		response, err := handler(ctx, request)
		if runs.Load() == 1 && len(seen.keys) == 1 {
			return nil, status.Error(codes.Unavailable, "the answer is lost")
		}
		return response, err
	}
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(seen.intercept, lost, newUnary(t, grpcmw.Config{}, grpcmw.Methods{withdraw: {newOnce(t, memstore.New())}})))
	server.RegisterService(bank{unary: func(context.Context, *dynamicpb.Message) (any, error) { return receipt(runs.Add(1)), nil }}.describe(), nil)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn := dial(t, listener, grpc.WithUnaryInterceptor(interceptor), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(`{
		"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`))
	withdrawOf(t.Context(), conn).check(t, 1, true)
	seen.check(t, 2)
}

func TestReplayedByMetadata(t *testing.T) {
	t.Parallel()
	b, _ := counting()
	conn, _ := clientOf(t, grpcmw.ClientConfig{}, b, newOnce(t, memstore.New()))
	ctx := dedupe.ContextWithKey(t.Context(), "k")
	for i := range 2 {
		if got := withdrawOf(ctx, conn); grpcmw.Replayed(got.header) != (i > 0) {
			t.Errorf("call %d: header %v", i+1, got.header)
		}
	}
	if grpcmw.Replayed(nil) {
		t.Error("nothing is a replay")
	}
}

func TestClientConfig(t *testing.T) {
	t.Parallel()
	_, err := grpcmw.ClientConfig{
		Header: "grpc-key", Methods: []string{"Withdraw"}, MaxAttempts: 1001, MaxWait: time.Millisecond,
	}.Unary()
	for _, want := range []string{
		`Header is "grpc-key", which is gRPC's own`, `"Withdraw" is not the name of a method`, "MaxAttempts is 1001", "MaxWait is 1ms",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	if _, err := (grpcmw.ClientConfig{Header: "X-Request-ID", MaxAttempts: 1000, MaxWait: 24 * time.Hour}).Unary(); err != nil {
		t.Error(err)
	}
}
