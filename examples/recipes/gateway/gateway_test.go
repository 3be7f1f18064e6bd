package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/httpmw"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/interlock-go/interlock/examples/recipes/accountspb"
	"github.com/interlock-go/interlock/examples/recipes/gateway"
)

// A repeat gets the same bytes and is marked. It may be written in other JSON.
func TestRunsOnce(t *testing.T) {
	a := &accounts{}
	c := start(t, a, newOnce(t, memstore.New()))
	first := c.withdraw("anna", "k", `{"amount":"30"}`)
	wantStatus(t, first, http.StatusOK, "")
	if first.replayed() || !strings.Contains(first.body, `"70"`) {
		t.Errorf("first answer: %v", first)
	}
	for _, body := range []string{`{"amount":"30"}`, `{ "amount": 30, "id": "7" }`} {
		if repeat := c.withdraw("anna", "k", body); !repeat.replayed() || repeat.status != first.status || repeat.body != first.body {
			t.Errorf("repeat: %v; want %v, replayed", repeat, first)
		}
	}
	if quoted := c.withdraw("anna", `"k"`, `{"amount":"30"}`); !quoted.replayed() {
		t.Errorf("repeat with a quoted key: %v", quoted)
	}
	if runs := a.runs.Load(); runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

func TestVerdictIsReplayed(t *testing.T) {
	a := &accounts{handler: func(context.Context) error { return status.Error(codes.NotFound, "no such account") }}
	c := start(t, a, newOnce(t, memstore.New()))
	first, repeat := c.withdraw("anna", "k", `{}`), c.withdraw("anna", "k", `{}`)
	wantStatus(t, first, http.StatusNotFound, "")
	if first.replayed() || !repeat.replayed() || repeat.status != first.status || repeat.body != first.body || a.runs.Load() != 1 {
		t.Errorf("%d runs; got %v, then %v", a.runs.Load(), first, repeat)
	}
}

func TestFailureIsNotKept(t *testing.T) {
	for _, failure := range []error{
		status.Error(codes.Internal, "broken"), status.Error(codes.Unavailable, "away"),
		status.Error(codes.Canceled, "stopped"), errors.New("plain"),
	} {
		t.Run(status.Code(failure).String(), func(t *testing.T) {
			a := &accounts{}
			a.handler = func(context.Context) error {
				if a.runs.Load() == 1 {
					return failure
				}
				return nil
			}
			c := start(t, a, newOnce(t, memstore.New()))
			if first := c.withdraw("anna", "k", `{}`); first.status < 499 {
				t.Errorf("first answer: %v", first)
			}
			repeat := c.withdraw("anna", "k", `{}`)
			wantStatus(t, repeat, http.StatusOK, "")
			if repeat.replayed() || a.runs.Load() != 2 {
				t.Errorf("%d runs; repeat: %v", a.runs.Load(), repeat)
			}
		})
	}
}

func TestConflicts(t *testing.T) {
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
	c := start(t, a, newOnce(t, store), newAccount(t, store))
	done := make(chan answer)
	go func() { done <- c.withdraw("anna", "k", `{"amount":"1"}`) }()
	<-entered

	for _, test := range []struct {
		key, body string
		status    int
		problem   string
		after     string
	}{
		{"k", `{"amount":"1"}`, http.StatusConflict, "in-flight", "1"},
		{"other", `{"amount":"1"}`, http.StatusConflict, "resource-locked", "1"},
		{"k", `{"amount":"2"}`, http.StatusUnprocessableEntity, "key-reused", ""},
	} {
		got := c.withdraw("anna", test.key, test.body)
		wantStatus(t, got, test.status, test.problem)
		if after := got.header.Get("Retry-After"); after != test.after {
			t.Errorf("%s: Retry-After %q, want %q", test.problem, after, test.after)
		}
	}
	close(proceed)
	wantStatus(t, <-done, http.StatusOK, "")
	wantStatus(t, c.withdraw("anna", "other", `{"amount":"1"}`), http.StatusOK, "")
	wantStatus(t, c.withdraw("anna", "k", `{"amount":"2"}`), http.StatusUnprocessableEntity, "key-reused")
	if runs := a.runs.Load(); runs != 2 {
		t.Errorf("%d runs", runs)
	}
}

func TestCallersAreApart(t *testing.T) {
	a := &accounts{}
	c := start(t, a, newOnce(t, memstore.New()))
	anna, bert := c.withdraw("anna", "k", `{"amount":"1"}`), c.withdraw("bert", "k", `{"amount":"2"}`)
	wantStatus(t, anna, http.StatusOK, "")
	wantStatus(t, bert, http.StatusOK, "")
	if bert.replayed() || bert.body == anna.body || a.runs.Load() != 2 {
		t.Errorf("%d runs; anna got %v, bert %v", a.runs.Load(), anna, bert)
	}
}

// Headers that are not there, not usable or there twice, under whichever name, let nobody pass.
func TestHeaders(t *testing.T) {
	const anna, key = "Authorization: Bearer anna", "Idempotency-Key: k"
	for _, test := range []struct {
		name    string
		lines   []string
		problem string
	}{
		{"no key", []string{anna}, "key-missing"},
		{"no caller", []string{key}, "key-missing"},
		{"other scheme", []string{"Authorization: Basic YTpi", key}, "key-invalid"},
		{"two keys", []string{anna, key, "Idempotency-Key: l"}, "key-invalid"},
		{"key over the gateway's prefix too", []string{anna, key, "Grpc-Metadata-Idempotency-Key: l"}, "key-invalid"},
		{"caller over the gateway's prefix too", []string{anna, "Grpc-Metadata-Authorization: Bearer bert", key}, "key-invalid"},
		{"comma", []string{anna, "Idempotency-Key: a,b"}, "key-invalid"},
		{"key that is not ASCII", []string{anna, "Idempotency-Key: clé"}, "key-missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := &accounts{}
			c := start(t, a, newOnce(t, memstore.New()))
			wantStatus(t, c.send(withdraw, `{}`, test.lines...), http.StatusBadRequest, test.problem)
			if runs := a.runs.Load(); runs != 0 {
				t.Errorf("%d runs", runs)
			}
		})
	}
}

// Without Options, the gateway drops the key; and a matcher that returns "authorization" doubles it.
func TestWithoutTheRecipe(t *testing.T) {
	a := &accounts{}
	connection := startServer(t, a, nil, newOnce(t, memstore.New()))
	plain := serve(t, newGateway(t, connection))
	if got := plain.withdraw("anna", "k", `{}`); !strings.Contains(got.body, "KEY_MISSING") {
		t.Errorf("without options: %v", got)
	}
	doubling := serve(t, newGateway(t, connection, runtime.WithIncomingHeaderMatcher(func(name string) (string, bool) {
		return strings.ToLower(name), name == "Authorization" || name == "Idempotency-Key"
	})))
	if got := doubling.withdraw("anna", "k", `{}`); !strings.Contains(got.body, "header Authorization has more than one line") {
		t.Errorf("with a matcher that names authorization: %v", got)
	}
	if runs := a.runs.Load(); runs != 0 {
		t.Errorf("%d runs", runs)
	}
}

// RegisterAccountsHandlerServer is why the recipe registers connections.
func TestServersInProcessAreNotGuarded(t *testing.T) {
	a := &accounts{}
	mux := runtime.NewServeMux(gateway.Options()...)
	if err := accountspb.RegisterAccountsHandlerServer(t.Context(), mux, a); err != nil {
		t.Fatal(err)
	}
	c := serve(t, mux)
	c.withdraw("anna", "k", `{}`)
	if repeat := c.withdraw("anna", "k", `{}`); repeat.replayed() || a.runs.Load() != 2 {
		t.Errorf("%d runs; repeat: %v", a.runs.Load(), repeat)
	}
}

// Every refusal is told as httpmw tells it.
func TestRefusals(t *testing.T) {
	for _, outcome := range dedupe.Outcomes() {
		if outcome.Err() == nil {
			continue
		}
		t.Run(outcome.String(), func(t *testing.T) {
			guard, err := dedupe.Serialize(memstore.New(), "account", func(dedupe.Request) (string, error) {
				return "", &dedupe.Refusal{Outcome: outcome}
			})
			if err != nil {
				t.Fatal(err)
			}
			got := start(t, &accounts{}, guard).send(withdraw, `{}`)
			want := serve(t, httpmw.New(guard)(http.NotFoundHandler())).send(withdraw, `{}`)
			wantStatus(t, got, httpmw.Status(outcome), outcome.String())
			if got.body != want.body {
				t.Errorf("got %s, want %s", got.body, want.body)
			}
			for _, name := range []string{"Content-Type", "Cache-Control", "Retry-After"} {
				if got.header.Get(name) != want.header.Get(name) {
					t.Errorf("%s: %q, want %q", name, got.header.Get(name), want.header.Get(name))
				}
			}
		})
	}
	t.Run("what is wrong with the key", func(t *testing.T) {
		c := start(t, &accounts{}, newOnce(t, memstore.New()))
		if got := c.withdraw("anna", "a,b", `{}`); !strings.Contains(got.body, `"detail":"Idempotency-Key has a comma outside quotation marks"`) {
			t.Errorf("got %s", got.body)
		}
	})
	t.Run("time to wait", func(t *testing.T) {
		got := refused(t, dedupe.InFlight, 3*time.Second)
		if after := got.header.Get("Retry-After"); after != "3" {
			t.Errorf("Retry-After %q", after)
		}
	})
}

// Errors of the service stay the gateway's to write, whatever their code, and whatever reason another
// domain gives for them.
func TestOtherErrorsAreTheGateways(t *testing.T) {
	s, err := status.New(codes.FailedPrecondition, "short of money").WithDetails(
		&errdetails.ErrorInfo{Reason: dedupe.KeyReused.Reason(), Domain: "bank"})
	if err != nil {
		t.Fatal(err)
	}
	got := start(t, &accounts{handler: func(context.Context) error { return s.Err() }}).send(withdraw, `{}`)
	wantStatus(t, got, http.StatusBadRequest, "")
	if !strings.Contains(got.body, "short of money") || strings.Contains(got.header.Get("Content-Type"), "problem") {
		t.Errorf("got %v", got)
	}
}

// refused returns what the gateway tells of a refusal that a server made.
func refused(t *testing.T, outcome dedupe.Outcome, after time.Duration) answer {
	t.Helper()
	s, err := status.New(grpcmw.Code(outcome), outcome.Text()).WithDetails(
		&errdetails.ErrorInfo{Reason: outcome.Reason(), Domain: "github.com/interlock-go/interlock"},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(after)},
	)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, &accounts{handler: func(context.Context) error { return s.Err() }}).send(withdraw, `{}`)
}
