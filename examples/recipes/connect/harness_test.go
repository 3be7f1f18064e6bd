package connect_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	"github.com/interlock-go/interlock/examples/recipes/accountspb"
	"github.com/interlock-go/interlock/examples/recipes/accountspb/accountspbconnect"
	recipe "github.com/interlock-go/interlock/examples/recipes/connect"
)

// accounts counts the calls that are carried out.
type accounts struct {
	runs    atomic.Int64
	handler func(context.Context) error // before a withdrawal, if any
	watch   func(context.Context) error // in place of a stream, if any
}

func (a *accounts) Withdraw(ctx context.Context, r *connect.Request[accountspb.WithdrawRequest]) (*connect.Response[accountspb.Receipt], error) {
	n := a.runs.Add(1)
	if a.handler != nil {
		if err := a.handler(ctx); err != nil {
			return nil, err
		}
	}
	return connect.NewResponse(&accountspb.Receipt{Number: n, Id: r.Msg.GetId(), Balance: 100 - r.Msg.GetAmount()}), nil
}

func (a *accounts) Watch(ctx context.Context, _ *connect.Request[accountspb.WatchRequest], stream *connect.ServerStream[accountspb.Receipt]) error {
	a.runs.Add(1)
	if err := stream.Send(&accountspb.Receipt{Balance: 100}); err != nil {
		return err
	}
	return a.watch(ctx)
}

func newOnce(t *testing.T, store dedupe.Store) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Once(store, keyfuncs.Bearer(), keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func newSerialize(t *testing.T, store dedupe.Store, key dedupe.KeyFunc) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Serialize(store, "account", key)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// start serves a over HTTP/1 and HTTP/2, with guards for Withdraw.
func start(t *testing.T, a *accounts, guards ...*dedupe.Guard) *httptest.Server {
	t.Helper()
	return startMethods(t, a, grpcmw.Methods{accountspbconnect.AccountsWithdrawProcedure: guards})
}

func startMethods(t *testing.T, a *accounts, methods grpcmw.Methods, outer ...connect.Interceptor) *httptest.Server {
	t.Helper()
	guards, err := recipe.Interceptor(methods)
	if err != nil {
		t.Fatal(err)
	}
	_, handler := accountspbconnect.NewAccountsHandler(a, connect.WithInterceptors(append(outer, guards)...))
	return serve(t, handler)
}

func serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// protocols are all that a Connect handler speaks.
var protocols = map[string]connect.ClientOption{
	"Connect":       connect.WithClientOptions(),
	"Connect, JSON": connect.WithProtoJSON(),
	"gRPC":          connect.WithGRPC(),
	"gRPC-Web":      connect.WithGRPCWeb(),
}

func overAll(t *testing.T, run func(t *testing.T, protocol connect.ClientOption)) {
	t.Helper()
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) { run(t, protocol) })
	}
}

type client struct {
	t       *testing.T
	service accountspbconnect.AccountsClient
}

func newClient(t *testing.T, server *httptest.Server, options ...connect.ClientOption) client {
	return client{t, accountspbconnect.NewAccountsClient(server.Client(), server.URL, options...)}
}

// answer is what a client sees.
type answer struct {
	receipt *accountspb.Receipt
	err     *connect.Error // nil for a receipt
	header  http.Header
}

func (c client) withdraw(caller, key string, amount int64) answer {
	c.t.Helper()
	request := connect.NewRequest(&accountspb.WithdrawRequest{Id: "7", Amount: amount})
	if caller != "" {
		request.Header().Set("Authorization", "Bearer "+caller)
	}
	if key != "" {
		request.Header().Set("Idempotency-Key", key)
	}
	response, err := c.service.Withdraw(c.t.Context(), request)
	if err == nil {
		return answer{receipt: response.Msg, header: response.Header()}
	}
	failure := err.(*connect.Error)
	return answer{err: failure, header: failure.Meta()}
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// text is all that tells one answer from another, but the mark of a replay.
func (a answer) text() string {
	if a.err == nil {
		return a.receipt.String()
	}
	text := a.err.Error()
	for _, detail := range a.err.Details() {
		text += "; " + detail.Type() + " " + string(detail.Bytes())
	}
	return text
}

func wantReceipt(t *testing.T, got answer, number int64, replayed bool) {
	t.Helper()
	if got.err != nil || got.receipt.GetNumber() != number || got.replayed() != replayed {
		t.Errorf("got %s, replayed: %v; want receipt %d, replayed: %v", got.text(), got.replayed(), number, replayed)
	}
}

// wantRefusal checks code, reason and the time to wait, 0 for none.
func wantRefusal(t *testing.T, got answer, code connect.Code, outcome dedupe.Outcome, after time.Duration) {
	t.Helper()
	if got.err == nil || got.err.Code() != code || got.replayed() {
		t.Fatalf("got %s, replayed: %v; want %v", got.text(), got.replayed(), code)
	}
	if info := detail[*errdetails.ErrorInfo](t, got.err); info.GetReason() != outcome.Reason() {
		t.Errorf("reason %q, want %q", info.GetReason(), outcome.Reason())
	}
	if wait := detail[*errdetails.RetryInfo](t, got.err).GetRetryDelay().AsDuration(); wait != after {
		t.Errorf("RetryInfo of %v, want %v", wait, after)
	}
	if header := got.header.Get("Retry-After"); (header != "") != (after > 0) || after > 0 && header+"s" != after.String() {
		t.Errorf("Retry-After %q, want %v", header, after)
	}
	if strings.Contains(got.err.Message(), "rpc error") || strings.HasPrefix(got.err.Message(), "dedupe") {
		t.Errorf("clients are told %q", got.err.Message())
	}
}

// detail returns the detail of type T, nil for none.
func detail[T proto.Message](t *testing.T, failure *connect.Error) (found T) {
	t.Helper()
	for _, d := range failure.Details() {
		message, err := d.Value()
		if err != nil {
			t.Fatal(err)
		}
		if message, ok := message.(T); ok {
			return message
		}
	}
	return found
}
