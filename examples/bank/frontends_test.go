package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/examples/bank/bankpb"
)

// frontEnd sends orders by one framework, and puts what comes back into terms of all of them.
type frontEnd struct {
	name     string
	withdraw func(ctx context.Context, id string, amount int64, key string) result
	transfer func(ctx context.Context, id, to string, amount int64, key string) result
}

// result is how an order came out.
type result struct {
	receipt  receipt
	problem  string // what it was answered with instead of a receipt
	replayed bool
	err      error // there was no answer
}

func (s *served) frontEnds() []frontEnd {
	return []frontEnd{overJSON("nethttp", s.http), overJSON("echo", s.echo), overGRPC(s.grpc)}
}

func overJSON(name, url string) frontEnd {
	order := func(ctx context.Context, path, body, key string) result {
		headers := []string{"Authorization", "Bearer anna"}
		if key != "" {
			headers = append(headers, "Idempotency-Key", key)
		}
		r := send(ctx, http.MethodPost, url+path, body, headers...)
		got := result{err: r.err, replayed: r.header.Get("Idempotent-Replayed") == "true"}
		switch {
		case r.err != nil:
		case r.status == http.StatusCreated:
			got.err = json.Unmarshal([]byte(r.body), &got.receipt)
		default:
			var p struct{ Type string }
			got.err = json.Unmarshal([]byte(r.body), &p)
			_, got.problem, _ = strings.Cut(p.Type, "#")
		}
		return got
	}
	return frontEnd{
		name: name,
		withdraw: func(ctx context.Context, id string, amount int64, key string) result {
			return order(ctx, "/accounts/"+id+"/withdraw", fmt.Sprintf(`{"amount":%d}`, amount), key)
		},
		transfer: func(ctx context.Context, id, to string, amount int64, key string) result {
			return order(ctx, "/accounts/"+id+"/transfer", fmt.Sprintf(`{"to":%q,"amount":%d}`, to, amount), key)
		},
	}
}

func overGRPC(conn *grpc.ClientConn) frontEnd {
	client := bankpb.NewBankClient(conn)
	order := func(ctx context.Context, key string, call func(context.Context, ...grpc.CallOption) (*bankpb.Receipt, error)) result {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer anna")
		if key != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "idempotency-key", key)
		}
		var header metadata.MD
		r, err := call(ctx, grpc.Header(&header))
		got := result{replayed: slices.Equal(header.Get("idempotent-replayed"), []string{"true"})}
		if err == nil {
			got.receipt = receipt{r.GetTransaction(), r.GetAccount(), r.GetBalance()}
		} else if reason := reasonOf(err); reason != "" {
			got.problem = strings.ToLower(strings.ReplaceAll(reason, "_", "-"))
		} else {
			got.err = err
		}
		return got
	}
	return frontEnd{
		name: "grpc",
		withdraw: func(ctx context.Context, id string, amount int64, key string) result {
			return order(ctx, key, func(ctx context.Context, options ...grpc.CallOption) (*bankpb.Receipt, error) {
				return client.Withdraw(ctx, &bankpb.WithdrawRequest{Id: id, Amount: amount}, options...)
			})
		},
		transfer: func(ctx context.Context, id, to string, amount int64, key string) result {
			return order(ctx, key, func(ctx context.Context, options ...grpc.CallOption) (*bankpb.Receipt, error) {
				return client.Transfer(ctx, &bankpb.TransferRequest{Id: id, To: to, Amount: amount}, options...)
			})
		},
	}
}

// reasonOf returns the reason in the ErrorInfo of a status, "" if there is none.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// while starts an order that is answered while the test goes on.
func while(order func() result) <-chan result {
	answered := make(chan result, 1)
	go func() { answered <- order() }()
	return answered
}

// Two writers of one account exclude each other whichever frameworks they come by.
func TestFrameworksExcludeEachOther(t *testing.T) {
	c := quick()
	c.lease, c.work, c.wait = time.Second, patience, 0
	s := open(t, c)
	for _, holder := range s.frontEnds() {
		t.Run(holder.name, func(t *testing.T) {
			for _, test := range []struct {
				locks int
				order func() result
			}{
				{1, func() result { return holder.withdraw(t.Context(), "A", 1, "") }},
				{2, func() result { return holder.transfer(t.Context(), "B", "A", 1, "") }},
			} {
				holding := while(test.order)
				eventually(t, "the accounts are locked", func() bool { return len(guardKeys(s.redis)) == test.locks })
				for _, other := range s.frontEnds() {
					for _, got := range []result{
						other.withdraw(t.Context(), "A", 1, ""),
						other.transfer(t.Context(), "A", "C", 1, ""),
						other.transfer(t.Context(), "C", "A", 1, ""),
					} {
						if got != (result{problem: "resource-locked"}) {
							t.Fatalf("%s while %d are locked: %+v", other.name, test.locks, got)
						}
					}
				}
				releaseGuards(s.redis)
				if got := <-holding; got != (result{problem: "interrupted"}) {
					t.Errorf("the holder: %+v", got)
				}
			}
		})
	}
	for _, id := range accountIDs {
		wantAccount(t, s.http, id, `{"account":"`+id+`","balance":1000,"executions":0}`)
	}
}

// One withdrawal by each framework, all at once: 1000 − 200 − 300 − 100 is 400.
func TestNothingIsLostBetweenFrameworks(t *testing.T) {
	c := quick()
	c.work, c.wait = 100*time.Millisecond, patience
	s := open(t, c)
	withdrawAtOnce(t, s.frontEnds())
	for _, url := range []string{s.http, s.echo} {
		wantAccount(t, url, "A", `{"account":"A","balance":400,"executions":3}`)
	}
	a, err := bankpb.NewBankClient(s.grpc).GetAccount(t.Context(), &bankpb.GetAccountRequest{Id: "A"})
	if err != nil || a.GetAccount() != "A" || a.GetBalance() != 400 || a.GetExecutions() != 3 {
		t.Errorf("by gRPC: %v %v", a, err)
	}
}

// withdrawAtOnce takes 200, 300 and 100 out of A, each by another framework.
func withdrawAtOnce(t *testing.T, frontEnds []frontEnd) {
	t.Helper()
	var answers []<-chan result
	for i, amount := range []int64{200, 300, 100} {
		answers = append(answers, while(func() result { return frontEnds[i].withdraw(t.Context(), "A", amount, "") }))
	}
	for i, answer := range answers {
		if got := <-answer; got.err != nil || got.problem != "" {
			t.Errorf("%s: %+v", frontEnds[i].name, got)
		}
	}
}

// A duplicate runs once and gets the first answer again. But the framework is part of the operation:
// sent by another one, the same order with the same key and caller is another operation.
func TestDuplicates(t *testing.T) {
	s := open(t, quick())
	first := map[string]result{}
	for i, frontEnd := range s.frontEnds() {
		got := frontEnd.withdraw(t.Context(), "A", 100, "k")
		if want := (receipt{int64(i + 1), "A", int64(1000 - 100*(i+1))}); got != (result{receipt: want}) {
			t.Errorf("first by %s: %+v", frontEnd.name, got)
		}
		first[frontEnd.name] = got
	}
	for _, frontEnd := range s.frontEnds() {
		want := first[frontEnd.name]
		want.replayed = true
		if got := frontEnd.withdraw(t.Context(), "A", 100, "k"); got != want {
			t.Errorf("again by %s: %+v", frontEnd.name, got)
		}
		if got := frontEnd.withdraw(t.Context(), "A", 101, "k"); got != (result{problem: "key-reused"}) {
			t.Errorf("another amount by %s: %+v", frontEnd.name, got)
		}
	}
	wantAccount(t, s.http, "A", `{"account":"A","balance":700,"executions":3}`)
}

// A verdict is kept as a receipt is.
func TestDuplicatesOfRefusedOrders(t *testing.T) {
	s := open(t, quick())
	for _, frontEnd := range s.frontEnds() {
		for _, replayed := range []bool{false, true} {
			for key, test := range map[string]struct {
				problem string
				got     result
			}{
				"unknown": {"unknown-account", frontEnd.transfer(t.Context(), "A", "X", 1, "unknown")},
				"poor":    {"insufficient-funds", frontEnd.transfer(t.Context(), "A", "B", 1001, "poor")},
				"bad":     {"bad-request", frontEnd.transfer(t.Context(), "A", "B", 0, "bad")},
			} {
				if want := (result{problem: test.problem, replayed: replayed}); test.got != want {
					t.Errorf("%s by %s: %+v; want %+v", key, frontEnd.name, test.got, want)
				}
			}
		}
	}
}
