package gateway_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/interlock-go/interlock/examples/recipes/accountspb"
	"github.com/interlock-go/interlock/examples/recipes/gateway"
)

const withdraw = "/v1/accounts/7/withdraw"

// accounts counts the withdrawals that are carried out.
type accounts struct {
	accountspb.UnimplementedAccountsServer

	runs    atomic.Int64
	handler func(context.Context) error // before a withdrawal, if any
}

func (a *accounts) Withdraw(ctx context.Context, r *accountspb.WithdrawRequest) (*accountspb.Receipt, error) {
	n := a.runs.Add(1)
	if a.handler != nil {
		if err := a.handler(ctx); err != nil {
			return nil, err
		}
	}
	return &accountspb.Receipt{Number: n, Id: r.GetId(), Balance: 100 - r.GetAmount()}, nil
}

func newOnce(t *testing.T, store dedupe.Store) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Once(store, keyfuncs.Bearer(), keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func newAccount(t *testing.T, store dedupe.Store) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Serialize(store, "account", keyfuncs.Param("id"))
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// startServer serves a over gRPC behind guards, and returns a connection to it.
func startServer(t *testing.T, a *accounts, dial []grpc.DialOption, guards ...*dedupe.Guard) *grpc.ClientConn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(grpcmw.UnaryServerInterceptor(grpcmw.Methods{
		accountspb.Accounts_Withdraw_FullMethodName: guards,
	})))
	accountspb.RegisterAccountsServer(server, a)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(), append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func newGateway(t *testing.T, connection *grpc.ClientConn, options ...runtime.ServeMuxOption) http.Handler {
	t.Helper()
	mux := runtime.NewServeMux(options...)
	if err := accountspb.RegisterAccountsHandler(t.Context(), mux, connection); err != nil {
		t.Fatal(err)
	}
	return mux
}

// start serves a over HTTP, through a gateway of the recipe, behind guards at the gRPC server.
func start(t *testing.T, a *accounts, guards ...*dedupe.Guard) client {
	t.Helper()
	return serve(t, newGateway(t, startServer(t, a, nil, guards...), gateway.Options()...))
}

func serve(t *testing.T, handler http.Handler) client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return client{t, server.URL}
}

type client struct {
	t   *testing.T
	url string
}

type answer struct {
	status int
	header http.Header
	body   string
}

// send posts a body with header lines of the form "Name: value".
func (c client) send(path, body string, lines ...string) answer {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

func (c client) withdraw(caller, key, body string) answer {
	c.t.Helper()
	return c.send(withdraw, body, "Authorization: Bearer "+caller, "Idempotency-Key: "+key)
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

func wantStatus(t *testing.T, got answer, status int, problem string) {
	t.Helper()
	if got.status != status || problem != "" && !strings.Contains(got.body, "#"+problem+`"`) {
		t.Errorf("got %d %s; want %d %s", got.status, got.body, status, problem)
	}
}
