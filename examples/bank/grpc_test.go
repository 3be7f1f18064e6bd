package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/examples/bank/bankpb"
)

func TestGRPC(t *testing.T) {
	for _, unguarded := range []bool{false, true} {
		c := quick()
		c.unguarded = unguarded
		client := bankpb.NewBankClient(open(t, c).grpc)
		withdrawn, err := client.Withdraw(t.Context(), &bankpb.WithdrawRequest{Id: "A", Amount: 200})
		if want := (&bankpb.Receipt{Transaction: 1, Account: "A", Balance: 800}); err != nil || !proto.Equal(withdrawn, want) {
			t.Errorf("unguarded %t: Withdraw: %v %v", unguarded, withdrawn, err)
		}
		transferred, err := client.Transfer(t.Context(), &bankpb.TransferRequest{Id: "A", To: "B", Amount: 300})
		if want := (&bankpb.Receipt{Transaction: 2, Account: "A", Balance: 500}); err != nil || !proto.Equal(transferred, want) {
			t.Errorf("unguarded %t: Transfer: %v %v", unguarded, transferred, err)
		}
		for _, want := range []*bankpb.Account{
			{Account: "A", Balance: 500, Executions: 2},
			{Account: "B", Balance: 1300, Executions: 1},
			{Account: "C", Balance: 1000},
		} {
			if a, err := client.GetAccount(t.Context(), &bankpb.GetAccountRequest{Id: want.GetAccount()}); err != nil || !proto.Equal(a, want) {
				t.Errorf("unguarded %t: GetAccount: %v %v; want %v", unguarded, a, err, want)
			}
		}
	}
}

func TestGRPCCodes(t *testing.T) {
	type withdraw = bankpb.WithdrawRequest
	type transfer = bankpb.TransferRequest
	for _, test := range []struct {
		name      string
		message   proto.Message
		code      codes.Code
		guarded   string // the reason
		unguarded string // the same; "" where it takes a guard to find something wrong
		metadata  []string
	}{
		{name: "no account", message: &withdraw{Id: "X", Amount: 1}, code: codes.NotFound, guarded: "UNKNOWN_ACCOUNT", unguarded: "UNKNOWN_ACCOUNT"},
		{name: "transfer from no account", message: &transfer{Id: "X", To: "A", Amount: 1}, code: codes.NotFound, guarded: "UNKNOWN_ACCOUNT", unguarded: "UNKNOWN_ACCOUNT"},
		{name: "transfer to no account", message: &transfer{Id: "A", To: "X", Amount: 1}, code: codes.NotFound, guarded: "UNKNOWN_ACCOUNT", unguarded: "UNKNOWN_ACCOUNT"},
		{name: "show no account", message: &bankpb.GetAccountRequest{Id: "X"}, code: codes.NotFound, guarded: "UNKNOWN_ACCOUNT", unguarded: "UNKNOWN_ACCOUNT"},
		{name: "not enough money", message: &withdraw{Id: "A", Amount: 1001}, code: codes.FailedPrecondition, guarded: "INSUFFICIENT_FUNDS", unguarded: "INSUFFICIENT_FUNDS"},
		{name: "not enough money to transfer", message: &transfer{Id: "A", To: "B", Amount: 1001}, code: codes.FailedPrecondition, guarded: "INSUFFICIENT_FUNDS", unguarded: "INSUFFICIENT_FUNDS"},

		{name: "no id", message: &withdraw{Amount: 1}, code: codes.InvalidArgument, guarded: "KEY_MISSING", unguarded: "BAD_REQUEST"},
		{name: "transfer without id", message: &transfer{To: "B", Amount: 1}, code: codes.InvalidArgument, guarded: "KEY_MISSING", unguarded: "BAD_REQUEST"},
		{name: "show nothing", message: &bankpb.GetAccountRequest{}, code: codes.InvalidArgument, guarded: "BAD_REQUEST", unguarded: "BAD_REQUEST"},
		{name: "to nobody", message: &transfer{Id: "A", Amount: 1}, code: codes.InvalidArgument, guarded: "KEY_MISSING", unguarded: "BAD_REQUEST"},
		{name: "to itself", message: &transfer{Id: "A", To: "A", Amount: 1}, code: codes.InvalidArgument, guarded: "BAD_REQUEST", unguarded: "BAD_REQUEST"},
		{name: "no amount", message: &withdraw{Id: "A"}, code: codes.InvalidArgument, guarded: "BAD_REQUEST", unguarded: "BAD_REQUEST"},
		{name: "negative", message: &transfer{Id: "A", To: "B", Amount: -1}, code: codes.InvalidArgument, guarded: "BAD_REQUEST", unguarded: "BAD_REQUEST"},
		{name: "more than is allowed", message: &withdraw{Id: "A", Amount: maxAmount + 1}, code: codes.InvalidArgument, guarded: "BAD_REQUEST", unguarded: "BAD_REQUEST"},
		{name: "too large", message: &withdraw{Id: strings.Repeat("A", maxBody), Amount: 1}, code: codes.ResourceExhausted},

		{name: "empty key", message: &withdraw{Id: "A", Amount: 1}, code: codes.InvalidArgument, guarded: "KEY_INVALID", metadata: []string{"idempotency-key", ""}},
		{name: "two keys", message: &withdraw{Id: "A", Amount: 1}, code: codes.InvalidArgument, guarded: "KEY_INVALID", metadata: []string{"idempotency-key", "a", "idempotency-key", "b"}},
		{name: "no bearer", message: &withdraw{Id: "A", Amount: 1}, code: codes.InvalidArgument, guarded: "KEY_INVALID", metadata: []string{"idempotency-key", "a", "authorization", "Basic YTpi"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, unguarded := range []bool{false, true} {
				c, reason := quick(), test.guarded
				if unguarded {
					c.unguarded, reason = true, test.unguarded
				}
				if reason == "" && test.guarded != "" {
					continue
				}
				s := open(t, c)
				err := call(metadata.AppendToOutgoingContext(t.Context(), test.metadata...), bankpb.NewBankClient(s.grpc), test.message)
				if status.Code(err) != test.code || reasonOf(err) != reason {
					t.Errorf("unguarded %t: %.300v %q; want %v %q", unguarded, err, reasonOf(err), test.code, reason)
				}
				for _, id := range accountIDs {
					wantAccount(t, s.http, id, `{"account":"`+id+`","balance":1000,"executions":0}`)
				}
				if keys := guardKeys(s.redis); len(keys) > 0 {
					t.Errorf("left behind: %q", keys)
				}
			}
		})
	}
}

func call(ctx context.Context, client bankpb.BankClient, message proto.Message) (err error) {
	switch r := message.(type) {
	case *bankpb.WithdrawRequest:
		_, err = client.Withdraw(ctx, r)
	case *bankpb.TransferRequest:
		_, err = client.Transfer(ctx, r)
	case *bankpb.GetAccountRequest:
		_, err = client.GetAccount(ctx, r)
	}
	return err
}

func TestGRPCCallerIsPartOfTheKey(t *testing.T) {
	s := open(t, quick())
	client := bankpb.NewBankClient(s.grpc)
	for _, caller := range []string{"Bearer anna", "Bearer berta", ""} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", "k")
		if caller != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", caller)
		}
		for range 2 {
			if _, err := client.Withdraw(ctx, &bankpb.WithdrawRequest{Id: "A", Amount: 100}); err != nil {
				t.Errorf("%q: %v", caller, err)
			}
		}
	}
	wantAccount(t, s.http, "A", `{"account":"A","balance":700,"executions":3}`)
}

func TestGRPCClientThatLeaves(t *testing.T) {
	c := quick()
	c.work = time.Second
	s := open(t, c)
	ctx, hangUp := context.WithCancel(t.Context())
	left := while(func() result { return overGRPC(s.grpc).withdraw(ctx, "A", 200, "k") })
	eventually(t, "the handler runs", func() bool { return len(guardKeys(s.redis)) == 2 })
	hangUp()
	if got := <-left; status.Code(got.err) != codes.Canceled {
		t.Fatalf("answered before the client left: %+v", got)
	}
	again := overGRPC(s.grpc).withdraw(t.Context(), "A", 200, "k")
	if want := (result{receipt: receipt{1, "A", 800}, replayed: true}); again != want {
		t.Errorf("%+v", again)
	}
	wantAccount(t, s.http, "A", `{"account":"A","balance":800,"executions":1}`)
}

func TestGRPCWhenRedisFails(t *testing.T) {
	const infrastructure = "LOADING secret.internal:6379"
	t.Run("before anything was written", func(t *testing.T) {
		c := quick()
		c.unguarded = true
		s := open(t, c)
		s.redis.SetError(infrastructure)
		for _, message := range []proto.Message{
			&bankpb.GetAccountRequest{Id: "A"},
			&bankpb.WithdrawRequest{Id: "A", Amount: 1},
			&bankpb.TransferRequest{Id: "A", To: "B", Amount: 1},
		} {
			err := call(t.Context(), bankpb.NewBankClient(s.grpc), message)
			retry := slices.ContainsFunc(status.Convert(err).Details(), func(detail any) bool {
				info, ok := detail.(*errdetails.RetryInfo)
				return ok && info.GetRetryDelay().AsDuration() == retryAfter
			})
			if status.Code(err) != codes.Unavailable || reasonOf(err) != "LEDGER_UNAVAILABLE" || !retry || strings.Contains(err.Error(), "secret") {
				t.Errorf("%T: %v %v", message, err, status.Convert(err).Details())
			}
		}
		s.redis.SetError("")
		wantAccount(t, s.http, "A", `{"account":"A","balance":1000,"executions":0}`)
	})
	t.Run("on the write", func(t *testing.T) {
		s := open(t, quick())
		s.redis.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
			if command != "EXEC" {
				return false
			}
			c.WriteError(infrastructure)
			return true
		})
		ctx := metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", "pay")
		withdraw := func() error {
			return call(ctx, bankpb.NewBankClient(s.grpc), &bankpb.WithdrawRequest{Id: "A", Amount: 1})
		}
		first := withdraw()
		s.redis.Server().SetPreHook(nil)
		again := withdraw() // it may have been made: it does not run again
		for _, err := range []error{first, again} {
			if status.Code(err) != codes.DeadlineExceeded || reasonOf(err) != "OUTCOME_UNCERTAIN" || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v", err)
			}
		}
		wantAccount(t, s.http, "A", `{"account":"A","balance":1000,"executions":0}`)
	})
}

// What grpcurl does: it knows nothing of the service but what the server tells it.
func TestReflection(t *testing.T) {
	s := open(t, quick())
	stream, err := reflectionpb.NewServerReflectionClient(s.grpc).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(r *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		t.Helper()
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
		response, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	listed := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	if !slices.ContainsFunc(listed.GetListServicesResponse().GetService(), func(s *reflectionpb.ServiceResponse) bool { return s.GetName() == "bank.v1.Bank" }) {
		t.Errorf("services: %v", listed)
	}
	found := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "bank.v1.Bank"}})
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	files := found.GetFileDescriptorResponse().GetFileDescriptorProto()
	if len(files) != 1 {
		t.Fatalf("bank.v1.Bank: %v", found)
	}
	var described descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(files[0], &described); err != nil {
		t.Fatal(err)
	}
	file, err := protodesc.NewFile(&described, nil)
	if err != nil {
		t.Fatal(err)
	}
	methods := file.Services().ByName("Bank").Methods()
	for _, try := range []struct{ method, request, response string }{
		{"Withdraw", `{"id":"A","amount":200}`, `{"transaction":1,"account":"A","balance":800}`},
		{"Transfer", `{"id":"A","to":"B","amount":300}`, `{"transaction":2,"account":"A","balance":500}`},
		{"GetAccount", `{"id":"A"}`, `{"account":"A","balance":500,"executions":2}`},
	} {
		method := methods.ByName(protoreflect.Name(try.method))
		if method == nil {
			t.Fatalf("no method %s", try.method)
		}
		request, got, want := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output()), dynamicpb.NewMessage(method.Output())
		for text, message := range map[string]proto.Message{try.request: request, try.response: want} {
			if err := protojson.Unmarshal([]byte(text), message); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.grpc.Invoke(t.Context(), "/bank.v1.Bank/"+try.method, request, got); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: %v %v", try.method, got, err)
		}
	}
}
