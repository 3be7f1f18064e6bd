package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

func TestCode(t *testing.T) {
	t.Parallel()
	want := map[dedupe.Outcome]codes.Code{
		dedupe.Proceed: codes.OK, dedupe.Replay: codes.OK,
		dedupe.InFlight: codes.Aborted, dedupe.Locked: codes.Aborted,
		dedupe.KeyReused:  codes.FailedPrecondition,
		dedupe.KeyMissing: codes.InvalidArgument, dedupe.KeyInvalid: codes.InvalidArgument,
		dedupe.PayloadTooLarge:   codes.ResourceExhausted,
		dedupe.AnswerUnavailable: codes.Aborted, dedupe.Uncertain: codes.Aborted,
		dedupe.StoreUnavailable: codes.Unavailable,
	}
	for _, outcome := range dedupe.Outcomes() {
		code, listed := want[outcome]
		if !listed || grpcmw.Code(outcome) != code {
			t.Errorf("%v: %v, want %v", outcome, grpcmw.Code(outcome), code)
		}
	}
	if grpcmw.Code(dedupe.Outcome(99)) != codes.Internal {
		t.Error("an outcome of the future")
	}
}

const secret = "s3cret-key"

// refusals has a call for every outcome that is a refusal.
var refusals = map[dedupe.Outcome]func(t *testing.T, serve func(...*dedupe.Guard) *grpc.ClientConn, running gate) reply{
	dedupe.InFlight: func(t *testing.T, serve func(...*dedupe.Guard) *grpc.ClientConn, running gate) reply {
		conn := serve(newOnce(t, memstore.New()))
		go call(context.Background(), conn, withdraw, secret, transfer("7", ""))
		receive(t, running.entered, "the first")
		return call(t.Context(), conn, withdraw, secret, transfer("7", ""))
	},
	dedupe.Locked: func(t *testing.T, serve func(...*dedupe.Guard) *grpc.ClientConn, running gate) reply {
		conn := serve(newSerialize(t, memstore.New(), keyfuncs.Param("id")))
		go call(context.Background(), conn, withdraw, "", transfer(secret, ""))
		receive(t, running.entered, "the first")
		return call(t.Context(), conn, withdraw, "", transfer(secret, ""))
	},
	dedupe.KeyReused: func(t *testing.T, serve func(...*dedupe.Guard) *grpc.ClientConn, running gate) reply {
		conn := serve(newOnce(t, memstore.New()))
		go call(context.Background(), conn, withdraw, secret, transfer("7", ""))
		receive(t, running.entered, "the first")
		return call(t.Context(), conn, withdraw, secret, transfer("8", ""))
	},
	dedupe.KeyMissing: func(t *testing.T, serve func(...*dedupe.Guard) *grpc.ClientConn, _ gate) reply {
		return call(t.Context(), serve(newOnce(t, memstore.New())), withdraw, "", transfer("7", ""))
	},
	dedupe.KeyInvalid: func(t *testing.T, serve func(...*dedupe.Guard) *grpc.ClientConn, _ gate) reply {
		return call(t.Context(), serve(newOnce(t, memstore.New())), withdraw, secret+`"`, transfer("7", ""))
	},
	dedupe.PayloadTooLarge: func(t *testing.T, serve func(...*dedupe.Guard) *grpc.ClientConn, _ gate) reply {
		return call(t.Context(), serve(newOnce(t, memstore.New())), withdraw, secret, transfer("7", strings.Repeat("x", 2000)))
	},
	dedupe.AnswerUnavailable: func(t *testing.T, serve func(...*dedupe.Guard) *grpc.ClientConn, _ gate) reply {
		store := &changing{Store: memstore.New(), claimed: func(dedupe.Claimed, error) (dedupe.Claimed, error) {
			return dedupe.Claimed{Status: dedupe.StatusCompleted}, nil
		}}
		return call(t.Context(), serve(newOnce(t, store)), withdraw, secret, transfer("7", ""))
	},
	dedupe.Uncertain: func(t *testing.T, serve func(...*dedupe.Guard) *grpc.ClientConn, _ gate) reply {
		store := &changing{Store: memstore.New(), claimed: func(dedupe.Claimed, error) (dedupe.Claimed, error) {
			return dedupe.Claimed{Status: dedupe.StatusLapsed, Remaining: time.Hour}, nil
		}}
		guard := newOnce(t, store, dedupe.WithCrashPolicy(dedupe.CrashReport))
		return call(t.Context(), serve(guard), withdraw, secret, transfer("7", ""))
	},
	dedupe.StoreUnavailable: func(t *testing.T, serve func(...*dedupe.Guard) *grpc.ClientConn, _ gate) reply {
		store := &changing{Store: memstore.New(), claimed: func(dedupe.Claimed, error) (dedupe.Claimed, error) {
			return dedupe.Claimed{}, errOutage
		}}
		return call(t.Context(), serve(newOnce(t, store)), withdraw, secret, transfer("7", ""))
	},
}

// Every refusal comes as its code, with its reason and, where the call may succeed later, when. It
// says neither the key nor what is wrong with the infrastructure.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, outcome := range dedupe.Outcomes() {
		if outcome.Err() == nil {
			continue
		}
		for _, pushback := range []bool{false, true} {
			t.Run(fmt.Sprint(outcome, pushback), func(t *testing.T) {
				t.Parallel()
				provoke, listed := refusals[outcome]
				if !listed {
					t.Fatal("nothing provokes it")
				}
				running := newGate()
				var refused error
				seen := make(chan error, 10)
				serve := func(guards ...*dedupe.Guard) *grpc.ClientConn {
					b, _ := counting()
					answer := b.unary
					first := make(chan struct{}, 1)
					first <- struct{}{}
					b.unary = func(ctx context.Context, m *dynamicpb.Message) (any, error) {
						select {
						case <-first:
							running.pass(ctx)
						default:
							t.Error("the handler ran twice")
						}
						return answer(ctx, m)
					}
					outside := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
						response, err := handler(ctx, request)
						if err != nil {
							seen <- err
						}
						return response, err
					}
					config := grpcmw.Config{MaxPayload: 1000, Pushback: pushback}
					return b.serve(t, grpc.ChainUnaryInterceptor(outside, newUnary(t, config, grpcmw.Methods{withdraw: guards})))
				}
				got := provoke(t, serve, running)
				close(running.leave)
				refused = receive(t, seen, "the error on the server's side")

				got.checkRefused(t, outcome)
				checkDetails(t, got.err, outcome)
				checkPushback(t, got, outcome, pushback)
				checkSentinels(t, refused, outcome)
				for _, text := range []string{refused.Error(), fmt.Sprint(status.Convert(got.err).Proto(), got.header, got.trailer)} {
					if strings.Contains(text, secret) || strings.Contains(text, "10.0.0.7") {
						t.Errorf("it tells too much: %s", text)
					}
				}
			})
		}
	}
}

func checkDetails(t *testing.T, err error, outcome dedupe.Outcome) {
	t.Helper()
	retry, found := detail[*errdetails.RetryInfo](err)
	if found != outcome.Retryable() || found && !proto.Equal(retry.GetRetryDelay(), durationpb.New(time.Second)) {
		t.Errorf("retry info %v", retry)
	}
	bad, found := detail[*errdetails.BadRequest](err)
	if wanted := outcome == dedupe.KeyMissing || outcome == dedupe.KeyInvalid; found != wanted {
		t.Errorf("bad request %v", bad)
	}
	message := status.Convert(err).Message()
	switch outcome {
	case dedupe.KeyInvalid:
		violation := bad.GetFieldViolations()[0]
		if violation.GetField() != "idempotency-key" || !strings.Contains(violation.GetDescription(), "quotation") {
			t.Errorf("violation %v", violation)
		}
		if want := outcome.Text() + ": header idempotency-key " + violation.GetDescription(); message != want {
			t.Errorf("message %q, want %q", message, want)
		}
	case dedupe.KeyMissing:
		if violation := bad.GetFieldViolations()[0]; violation.GetField() != "" || violation.GetDescription() != outcome.Text() {
			t.Errorf("violation %v", violation)
		}
	default:
		if message != outcome.Text() {
			t.Errorf("message %q", message)
		}
	}
}

func checkPushback(t *testing.T, got reply, outcome dedupe.Outcome, pushback bool) {
	t.Helper()
	want := ""
	if pushback {
		want = "-1"
		if outcome.Retryable() {
			want = "1000"
		}
	}
	if values := strings.Join(got.trailer.Get("grpc-retry-pushback-ms"), ","); values != want {
		t.Errorf("pushback %q, want %q", values, want)
	}
}

// checkSentinels checks what interceptors further out see.
func checkSentinels(t *testing.T, err error, outcome dedupe.Outcome) {
	t.Helper()
	var refusal *dedupe.Refusal
	if !errors.As(err, &refusal) || refusal.Outcome != outcome {
		t.Fatalf("the refusal is %v", refusal)
	}
	for _, other := range dedupe.Outcomes() {
		if sentinel := other.Err(); sentinel != nil && errors.Is(err, sentinel) != (other == outcome) {
			t.Errorf("matches %v: %t", sentinel, other != outcome)
		}
	}
	if conflict := outcome == dedupe.InFlight || outcome == dedupe.Locked; errors.Is(err, dedupe.ErrConflict) != conflict {
		t.Errorf("conflict: %t", !conflict)
	}
	wrapped := status.Convert(fmt.Errorf("outside: %w", err))
	if wrapped.Code() != grpcmw.Code(outcome) || strings.Contains(wrapped.Message(), "10.0.0.7") {
		t.Errorf("wrapped: %v", wrapped)
	}
}

// A domain of one's own, and a key function whose words are not UTF-8.
func TestRefusalOfForeignWords(t *testing.T) {
	t.Parallel()
	guard := newSerialize(t, memstore.New(), func(dedupe.Request) (string, error) {
		return "", fmt.Errorf("for logs: %w", &dedupe.KeyError{Source: "tena\xffnt", Problem: "is \xff"})
	})
	b, _ := counting()
	got := call(t.Context(), b.guarded(t, grpcmw.Config{Domain: "bank.example"}, guard), withdraw, "", transfer("7", ""))
	info, _ := detail[*errdetails.ErrorInfo](got.err)
	bad, _ := detail[*errdetails.BadRequest](got.err)
	violation := bad.GetFieldViolations()[0]
	if info.GetDomain() != "bank.example" || violation.GetField() != "tena\uFFFDnt" || violation.GetDescription() != "is \uFFFD" {
		t.Errorf("got %v, %v", info, bad)
	}
	if want := dedupe.KeyInvalid.Text() + ": tena\uFFFDnt is \uFFFD"; status.Convert(got.err).Message() != want {
		t.Errorf("message %q", status.Convert(got.err).Message())
	}
}

// The words of an error that is not a KeyError stay on the server.
func TestRefusalOfOtherError(t *testing.T) {
	t.Parallel()
	guard := newSerialize(t, memstore.New(), func(dedupe.Request) (string, error) { return "", errors.New("at 10.0.0.7") })
	b, _ := counting()
	got := call(t.Context(), b.guarded(t, grpcmw.Config{}, guard), withdraw, "", transfer("7", ""))
	got.checkRefused(t, dedupe.KeyInvalid)
	if text := fmt.Sprint(status.Convert(got.err).Proto()); strings.Contains(text, "10.0.0.7") {
		t.Errorf("it tells too much: %s", text)
	}
}

// A refusal needs no server around it, in direct calls.
func TestRefusalWithoutTransport(t *testing.T) {
	t.Parallel()
	interceptor := newUnary(t, grpcmw.Config{Pushback: true}, grpcmw.Methods{withdraw: {newOnce(t, memstore.New())}})
	_, err := interceptor(metadata.NewIncomingContext(t.Context(), nil), transfer("7", ""), &grpc.UnaryServerInfo{FullMethod: withdraw}, nil)
	if !errors.Is(err, dedupe.ErrKeyMissing) {
		t.Errorf("error %v", err)
	}
}
