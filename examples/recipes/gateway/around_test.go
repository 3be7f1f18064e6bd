package gateway_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/examples/recipes/gateway"
)

// around serves a gateway behind httpmw, to a server without guards.
func around(t *testing.T, gateway http.Handler, guards ...*dedupe.Guard) client {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("POST /v1/accounts/{id}/withdraw", httpmw.New(guards...)(gateway))
	return serve(t, mux)
}

// The other way: httpmw around the gateway.
func TestAround(t *testing.T) {
	store := memstore.New()
	a := &accounts{}
	a.handler = func(context.Context) error {
		if a.runs.Load() == 1 {
			return status.Error(codes.Internal, "broken")
		}
		return nil
	}
	c := around(t, newGateway(t, startServer(t, a, nil)), newOnce(t, store), newAccount(t, store))
	wantStatus(t, c.withdraw("anna", "k", `{"amount":"30"}`), http.StatusInternalServerError, "")
	first, repeat := c.withdraw("anna", "k", `{"amount":"30"}`), c.withdraw("anna", "k", `{"amount":"30"}`)
	wantStatus(t, first, http.StatusOK, "")
	if first.replayed() || !repeat.replayed() || repeat.body != first.body || a.runs.Load() != 2 {
		t.Errorf("%d runs; got %v, then %v", a.runs.Load(), first, repeat)
	}
	wantStatus(t, c.withdraw("anna", "k", `{"amount":"31"}`), http.StatusUnprocessableEntity, "key-reused")
	wantStatus(t, c.send(withdraw, `{}`, "Authorization: Bearer anna"), http.StatusBadRequest, "key-missing")
}

// The server has done its work, and its answer does not arrive at the gateway: a guard at the server
// replays it, one around the gateway has it done twice. That is why the recipe is the former.
func TestAnswerIsLostBehindTheGateway(t *testing.T) {
	losing := func() []grpc.DialOption {
		var calls atomic.Int32
		return []grpc.DialOption{grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			err := invoke(ctx, method, request, reply, c, options...)
			if calls.Add(1) == 1 {
				return status.Error(codes.Unavailable, "the connection broke")
			}
			return err
		})}
	}
	twice := func(c client) (repeat answer) {
		wantStatus(t, c.withdraw("anna", "k", `{}`), http.StatusServiceUnavailable, "")
		return c.withdraw("anna", "k", `{}`)
	}

	a := &accounts{}
	connection := startServer(t, a, losing(), newOnce(t, memstore.New()))
	if repeat := twice(serve(t, newGateway(t, connection, gateway.Options()...))); !repeat.replayed() || a.runs.Load() != 1 {
		t.Errorf("guard at the server: %d runs; repeat: %v", a.runs.Load(), repeat)
	}

	a = &accounts{}
	if repeat := twice(around(t, newGateway(t, startServer(t, a, losing())), newOnce(t, memstore.New()))); repeat.replayed() || a.runs.Load() != 2 {
		t.Errorf("guard around the gateway: %d runs; repeat: %v", a.runs.Load(), repeat)
	}
}
