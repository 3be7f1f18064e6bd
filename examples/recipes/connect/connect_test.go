package connect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/interlock-go/interlock/examples/recipes/accountspb"
	"github.com/interlock-go/interlock/examples/recipes/accountspb/accountspbconnect"
	recipe "github.com/interlock-go/interlock/examples/recipes/connect"
)

// A call that is made in one protocol is replayed in all of them.
func TestRunsOnce(t *testing.T) {
	overAll(t, func(t *testing.T, protocol connect.ClientOption) {
		a := &accounts{}
		server := start(t, a, newOnce(t, memstore.New()))
		wantReceipt(t, newClient(t, server, protocol).withdraw("anna", "k", 30), 1, false)
		for name, repeat := range protocols {
			got := newClient(t, server, repeat).withdraw("anna", "k", 30)
			if wantReceipt(t, got, 1, true); got.receipt.GetBalance() != 70 {
				t.Errorf("repeat over %s: %v", name, got.receipt)
			}
		}
		if runs := a.runs.Load(); runs != 1 {
			t.Errorf("%d runs", runs)
		}
	})
}

// A repeat gets the same bytes, whoever sends them.
func TestBytes(t *testing.T) {
	for _, failure := range []error{nil, connect.NewError(connect.CodeNotFound, errors.New("no such account"))} {
		a := &accounts{handler: func(context.Context) error { return failure }}
		server := start(t, a, newOnce(t, memstore.New()))
		first := post(t, server, `{"id":"7","amount":"30"}`)
		repeat := post(t, server, `{ "amount": 30, "id": "7" }`)
		if first.body == "" || repeat.body != first.body || repeat.status != first.status || a.runs.Load() != 1 {
			t.Errorf("%d runs; got %v, then %v", a.runs.Load(), first, repeat)
		}
		if first.header.Get("Content-Type") != repeat.header.Get("Content-Type") {
			t.Errorf("got %v, then %v", first.header, repeat.header)
		}
		if first.header.Get("Idempotent-Replayed") != "" || repeat.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("got %v, then %v", first.header, repeat.header)
		}
	}
}

type httpAnswer struct {
	status int
	header http.Header
	body   string
}

// post sends what Anna sends, as anything that speaks HTTP can.
func post(t *testing.T, server *httptest.Server, body string) httpAnswer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+accountspbconnect.AccountsWithdrawProcedure, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer anna")
	r.Header.Set("Idempotency-Key", "k")
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return httpAnswer{response.StatusCode, response.Header, string(text)}
}

// An error that is a verdict is replayed with its details.
func TestVerdictIsReplayed(t *testing.T) {
	overAll(t, func(t *testing.T, protocol connect.ClientOption) {
		verdict := connect.NewError(connect.CodeFailedPrecondition, errors.New("short of money"))
		short, err := connect.NewErrorDetail(&errdetails.ErrorInfo{Reason: "SHORT", Domain: "bank"})
		if err != nil {
			t.Fatal(err)
		}
		verdict.AddDetail(short)
		a := &accounts{handler: func(context.Context) error { return fmt.Errorf("withdraw: %w", verdict) }}
		c := newClient(t, start(t, a, newOnce(t, memstore.New())), protocol)
		first, repeat := c.withdraw("anna", "k", 30), c.withdraw("anna", "k", 30)
		if first.err == nil || first.replayed() || !repeat.replayed() || repeat.text() != first.text() || a.runs.Load() != 1 {
			t.Errorf("%d runs; got %s, then %s, replayed: %v", a.runs.Load(), first.text(), repeat.text(), repeat.replayed())
		}
		if info := detail[*errdetails.ErrorInfo](t, repeat.err); info.GetReason() != "SHORT" {
			t.Errorf("the repeat has the detail %v", info)
		}
	})
}

func TestFailureIsNotKept(t *testing.T) {
	for name, failure := range map[string]error{
		"internal":    connect.NewError(connect.CodeInternal, errors.New("broken")),
		"unavailable": connect.NewError(connect.CodeUnavailable, errors.New("away")),
		"plain":       errors.New("plain"),
		"context":     context.Canceled,
		"no code":     connect.NewError(0, errors.New("no code")),
	} {
		t.Run(name, func(t *testing.T) {
			overAll(t, func(t *testing.T, protocol connect.ClientOption) {
				a := &accounts{}
				a.handler = func(context.Context) error {
					if a.runs.Load() == 1 {
						return failure
					}
					return nil
				}
				c := newClient(t, start(t, a, newOnce(t, memstore.New())), protocol)
				c.withdraw("anna", "k", 30)
				wantReceipt(t, c.withdraw("anna", "k", 30), 2, false)
				wantReceipt(t, c.withdraw("anna", "k", 30), 2, true)
			})
		})
	}
}

func TestConflicts(t *testing.T) {
	overAll(t, func(t *testing.T, protocol connect.ClientOption) {
		store := memstore.New()
		entered, proceed := make(chan struct{}), make(chan struct{})
		a := &accounts{}
		a.handler = func(context.Context) error {
			if a.runs.Load() == 1 {
				close(entered)
				<-proceed
			}
			return nil
		}
		server := start(t, a, newOnce(t, store), newSerialize(t, store, keyfuncs.Param("id")))
		c := newClient(t, server, protocol)
		done := make(chan answer)
		go func() { done <- c.withdraw("anna", "k", 30) }()
		<-entered

		wantRefusal(t, c.withdraw("anna", "k", 30), connect.CodeAborted, dedupe.InFlight, time.Second)
		wantRefusal(t, c.withdraw("anna", "other", 30), connect.CodeAborted, dedupe.Locked, time.Second)
		wantRefusal(t, c.withdraw("anna", "k", 31), connect.CodeFailedPrecondition, dedupe.KeyReused, 0)
		if got := post(t, server, `{"id":"7","amount":"30"}`); got.status != http.StatusConflict || got.header.Get("Retry-After") != "1" {
			t.Errorf("over HTTP: %v", got)
		}
		close(proceed)
		wantReceipt(t, <-done, 1, false)
		wantReceipt(t, c.withdraw("anna", "other", 30), 2, false)
		wantRefusal(t, c.withdraw("anna", "k", 31), connect.CodeFailedPrecondition, dedupe.KeyReused, 0)
	})
}

func TestKeys(t *testing.T) {
	overAll(t, func(t *testing.T, protocol connect.ClientOption) {
		a := &accounts{}
		c := newClient(t, start(t, a, newOnce(t, memstore.New())), protocol)
		wantRefusal(t, c.withdraw("anna", "", 30), connect.CodeInvalidArgument, dedupe.KeyMissing, 0)
		wantRefusal(t, c.withdraw("", "k", 30), connect.CodeInvalidArgument, dedupe.KeyMissing, 0)
		invalid := c.withdraw("anna", "a,b", 30)
		wantRefusal(t, invalid, connect.CodeInvalidArgument, dedupe.KeyInvalid, 0)
		if bad := detail[*errdetails.BadRequest](t, invalid.err); bad.GetFieldViolations()[0].GetField() != "Idempotency-Key" {
			t.Errorf("detail %v", bad)
		}
		if runs := a.runs.Load(); runs != 0 {
			t.Errorf("%d runs", runs)
		}
		wantReceipt(t, c.withdraw("anna", "k", 30), 1, false)
		wantReceipt(t, c.withdraw("bert", "k", 30), 2, false) // another caller
		wantReceipt(t, c.withdraw("anna", "k", 30), 1, true)
	})
}

// Every refusal has the code and the reason that grpcmw gives it, and interceptors further out can
// ask for its sentinel.
func TestRefusals(t *testing.T) {
	for _, outcome := range dedupe.Outcomes() {
		if outcome.Err() == nil {
			continue
		}
		t.Run(outcome.String(), func(t *testing.T) {
			guard := newSerialize(t, memstore.New(), func(dedupe.Request) (string, error) {
				return "", &dedupe.Refusal{Outcome: outcome}
			})
			var seen error
			watch := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
				return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
					response, err := next(ctx, r)
					seen = err
					return response, err
				}
			})
			server := startMethods(t, &accounts{}, grpcmw.Methods{accountspbconnect.AccountsWithdrawProcedure: {guard}}, watch)
			var after time.Duration
			if outcome.Retryable() {
				after = time.Second
			}
			overAll(t, func(t *testing.T, protocol connect.ClientOption) {
				got := newClient(t, server, protocol).withdraw("anna", "k", 30)
				wantRefusal(t, got, connect.Code(grpcmw.Code(outcome)), outcome, after)
				if !errors.Is(seen, outcome.Err()) {
					t.Errorf("outside the guards the error is %v", seen)
				}
			})
		})
	}
}

func TestHostIsAHeader(t *testing.T) {
	guard := newSerialize(t, memstore.New(), func(r dedupe.Request) (string, error) {
		if hosts := r.Header("Host"); len(hosts) != 1 || !strings.HasPrefix(hosts[0], "127.0.0.1:") {
			t.Errorf("Host is %q", hosts)
		}
		return "key", nil
	})
	overAll(t, func(t *testing.T, protocol connect.ClientOption) {
		newClient(t, start(t, &accounts{}, guard), protocol).withdraw("anna", "k", 30)
	})
}

// A stream holds the key of a Serialize while it lives, and its context carries the lease.
func TestStreams(t *testing.T) {
	overAll(t, func(t *testing.T, protocol connect.ClientOption) {
		guard := newSerialize(t, memstore.New(), keyfuncs.Header("Account"))
		proceed := make(chan struct{})
		a := &accounts{watch: func(ctx context.Context) error {
			if _, ok := guard.Lease(ctx); !ok {
				return errors.New("the handler has no lease")
			}
			<-proceed
			return nil
		}}
		c := newClient(t, startMethods(t, a, grpcmw.Methods{accountspbconnect.AccountsWatchProcedure: {guard}}), protocol)
		watch := func() *connect.ServerStreamForClient[accountspb.Receipt] {
			request := connect.NewRequest(&accountspb.WatchRequest{Id: "7"})
			request.Header().Set("Account", "7")
			stream, err := c.service.Watch(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			return stream
		}
		first := watch()
		if !first.Receive() {
			t.Fatal(first.Err())
		}
		second := watch()
		if second.Receive() {
			t.Fatal("two streams hold one key")
		}
		var failure *connect.Error
		if !errors.As(second.Err(), &failure) {
			t.Fatal(second.Err())
		}
		wantRefusal(t, answer{err: failure, header: failure.Meta()}, connect.CodeAborted, dedupe.Locked, time.Second)
		close(proceed)
		if first.Receive() || first.Err() != nil {
			t.Errorf("the first stream ended with %v", first.Err())
		}
		if runs := a.runs.Load(); runs != 1 {
			t.Errorf("%d runs", runs)
		}
	})
}

func TestConstruction(t *testing.T) {
	once := newOnce(t, memstore.New())
	for _, methods := range []grpcmw.Methods{
		{accountspbconnect.AccountsWatchProcedure: {once}},
		{"/accounts.v1.Accounts/*": {once}},
		{"/accounts.v1.Accounts/Deposit": {once}},
		{accountspbconnect.AccountsWithdrawProcedure: {nil}},
	} {
		if _, err := recipe.Interceptor(methods); err == nil {
			t.Errorf("no error for %v", methods)
		}
	}
}

// Clients may share the options of handlers.
func TestClientsPass(t *testing.T) {
	guards, err := recipe.Interceptor(grpcmw.Methods{accountspbconnect.AccountsWithdrawProcedure: {newOnce(t, memstore.New())}})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, start(t, &accounts{}), connect.WithInterceptors(guards))
	wantReceipt(t, c.withdraw("anna", "k", 30), 1, false)
	wantReceipt(t, c.withdraw("anna", "k", 30), 2, false)
}
