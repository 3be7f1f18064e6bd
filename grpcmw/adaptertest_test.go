package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/adaptertest"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

func TestAdapter(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, adaptertest.Adapter{
		Serve:  serveScenario,
		Caller: keyfuncs.Value(callerKey{}),
		Refusals: map[dedupe.Outcome]string{
			dedupe.InFlight:          "Aborted",
			dedupe.Locked:            "Aborted",
			dedupe.KeyReused:         "FailedPrecondition",
			dedupe.KeyMissing:        "InvalidArgument",
			dedupe.KeyInvalid:        "InvalidArgument",
			dedupe.PayloadTooLarge:   "ResourceExhausted",
			dedupe.AnswerUnavailable: "Aborted",
			dedupe.Uncertain:         "Aborted",
			dedupe.StoreUnavailable:  "Unavailable",
		},
		Failures: []adaptertest.Failure{
			{Name: "Status", Status: "NotFound", Kept: true},
			{Name: "StatusWithDetails", Status: "FailedPrecondition", Kept: true},
			{Name: "WrappedStatus", Status: "AlreadyExists", Kept: true},
			{Name: "StatusOfItsOwn", Status: "OutOfRange", Kept: true},
			{Name: "TransientStatus", Status: "Unavailable"},
			{Name: "TransientStatusWithDetails", Status: "ResourceExhausted"},
			{Name: "ConflictOfItsOwn", Status: "Aborted"},
			{Name: "ErrorOfAContext", Status: "DeadlineExceeded"},
			{Name: "PlainError", Status: "Unknown"},
		},
	}, adaptertest.Stores())
}

type callerKey struct{}

// overdrawnError has a status without being made of one.
type overdrawnError struct{}

func (overdrawnError) Error() string { return "overdrawn" }

func (overdrawnError) GRPCStatus() *status.Status {
	return status.New(codes.OutOfRange, "overdrawn by 3")
}

var failures = map[string]error{
	"Status": status.Error(codes.NotFound, "no such account"),
	"StatusWithDetails": detailed(codes.FailedPrecondition, &errdetails.ErrorInfo{Reason: "SHORT_OF_MONEY", Domain: "bank.example"},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "amount", Description: "is over 3"}}}),
	"WrappedStatus":              fmt.Errorf("deposit: %w", status.Error(codes.AlreadyExists, "it is there")),
	"StatusOfItsOwn":             overdrawnError{},
	"TransientStatus":            status.Error(codes.Unavailable, "the bank is closed"),
	"TransientStatusWithDetails": detailed(codes.ResourceExhausted, &errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)}),
	"ConflictOfItsOwn":           detailed(codes.Aborted, &errdetails.ErrorInfo{Reason: "IN_FLIGHT", Domain: "bank.example"}),
	"ErrorOfAContext":            context.DeadlineExceeded,
	"PlainError":                 errors.New("out of order"),
}

func detailed(code codes.Code, details ...protoadapt.MessageV1) error {
	s, err := status.New(code, "with details").WithDetails(details...)
	check(err)
	return s.Err()
}

// scenarioFile is the service of the scenarios.
var scenarioFile = register(`
	name: "scenario/v1/scenario.proto" package: "scenario.v1" syntax: "proto3"
	message_type {
		name: "Request"
		field { name: "id" json_name: "id" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "to" json_name: "to" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "text" json_name: "text" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
	}
	message_type {
		name: "Response"
		field { name: "text" json_name: "text" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
	}
	service {
		name: "Bank"
		method { name: "Withdraw" input_type: ".scenario.v1.Request" output_type: ".scenario.v1.Response" }
		method { name: "Deposit" input_type: ".scenario.v1.Request" output_type: ".scenario.v1.Response" }
		method {
			name: "Look" input_type: ".scenario.v1.Request" output_type: ".scenario.v1.Response"
			options { idempotency_level: NO_SIDE_EFFECTS }
		}
	}
`)

// operations are the methods in the order of adaptertest's operations.
var operations = [...]string{adaptertest.Withdraw: "Withdraw", adaptertest.Deposit: "Deposit", adaptertest.Look: "Look"}

// newScenarioMessage returns a message with these fields; those that are "" are left out.
func newScenarioMessage(name protoreflect.Name, fields map[protoreflect.Name]string) *dynamicpb.Message {
	message := dynamicpb.NewMessage(scenarioFile.Messages().ByName(name))
	for field, text := range fields {
		if text != "" {
			message.Set(message.Descriptor().Fields().ByName(field), protoreflect.ValueOfString(text))
		}
	}
	return message
}

func textOf(message any) string {
	reflected := message.(proto.Message).ProtoReflect()
	return reflected.Get(reflected.Descriptor().Fields().ByName("text")).String()
}

func serveScenario(t testing.TB, m adaptertest.Mount) adaptertest.Client {
	config := grpcmw.Config{
		MaxPayload: m.MaxPayload, MaxAnswer: m.MaxAnswer,
		KeepMetadata: []string{"x-kept", "x-kept-trailer"},
		Pushback:     true,
	}
	var chain []grpc.UnaryServerInterceptor
	if m.Recover == adaptertest.Outside {
		chain = append(chain, recovered)
	}
	chain = append(chain, identified)
	if m.Deadline != nil {
		chain = append(chain, func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			ctx, cancel := m.Deadline(ctx)
			defer cancel()
			return handler(ctx, request)
		})
	}
	for _, guards := range [][]*dedupe.Guard{m.Group, m.Route} {
		if len(guards) > 0 {
			chain = append(chain, newUnary(t, config, grpcmw.Methods{"/scenario.v1.Bank/*": guards}))
		}
	}
	if m.Recover == adaptertest.Inside {
		chain = append(chain, recovered)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(chain...))
	server.RegisterService(describeScenario(m.Handler), nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return scenarioClient{conn}
}

func describeScenario(handle adaptertest.Handler) *grpc.ServiceDesc {
	answer := func(ctx context.Context, request any) (any, error) {
		a := handle(ctx, textOf(request))
		if err := errors.Join(
			grpc.SetHeader(ctx, newMetadata("x-kept", a.Kept, "x-unkept", a.Unkept)),
			grpc.SetTrailer(ctx, newMetadata("x-kept-trailer", a.Kept, "x-unkept-trailer", a.Unkept)),
		); err != nil {
			return nil, err
		}
		switch {
		case a.Err != nil:
			return nil, a.Err
		case a.Failure != "":
			return nil, failures[a.Failure]
		default:
			return newScenarioMessage("Response", map[protoreflect.Name]string{"text": a.Text}), nil
		}
	}
	described := &grpc.ServiceDesc{ServiceName: "scenario.v1.Bank"}
	for _, name := range operations {
		info := &grpc.UnaryServerInfo{FullMethod: "/scenario.v1.Bank/" + name}
		described.Methods = append(described.Methods, grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			request := newScenarioMessage("Request", nil)
			if err := decode(request); err != nil {
				return nil, err
			}
			return interceptor(ctx, request, info, answer)
		}})
	}
	return described
}

// newMetadata returns metadata of pairs of names and values; those that are "" are left out.
func newMetadata(pairs ...string) metadata.MD {
	md := metadata.MD{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			md.Set(pair[0], pair[1])
		}
	}
	return md
}

// identified puts the caller where handlers look for it.
func identified(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	caller := ""
	if values := metadata.ValueFromIncomingContext(ctx, adaptertest.CallerHeader); len(values) > 0 {
		caller = values[0]
	}
	return handler(context.WithValue(ctx, callerKey{}, caller), request)
}

// recovered answers in place of a handler that panics.
func recovered(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
	defer func() {
		if recover() != nil {
			err = status.Error(codes.Internal, "the handler panicked")
		}
	}()
	return handler(ctx, request)
}

type scenarioClient struct{ conn *grpc.ClientConn }

func (c scenarioClient) Send(ctx context.Context, r adaptertest.Request) (adaptertest.Reply, error) {
	call := ctx
	for _, key := range r.Keys {
		call = metadata.AppendToOutgoingContext(call, adaptertest.KeyHeader, key)
	}
	if r.Caller != "" {
		call = metadata.AppendToOutgoingContext(call, adaptertest.CallerHeader, r.Caller)
	}
	request := newScenarioMessage("Request", map[protoreflect.Name]string{"id": r.Resource, "to": r.Other, "text": r.Text})
	response := newScenarioMessage("Response", nil)
	var header, trailer metadata.MD
	err := c.conn.Invoke(call, "/scenario.v1.Bank/"+operations[r.Operation], request, response, grpc.Header(&header), grpc.Trailer(&trailer))
	if deadline, ok := ctx.Deadline(); ok && status.Code(err) == codes.DeadlineExceeded && time.Until(deadline) < time.Second {
		<-ctx.Done() // the server was first
	}
	if ctx.Err() != nil {
		return adaptertest.Reply{}, ctx.Err()
	}
	reply := adaptertest.Reply{
		Replayed: value(header, "idempotent-replayed") == "true",
		Status:   adaptertest.OK,
		Body:     textOf(response),
		Kept:     value(header, "x-kept"),
		Unkept:   value(header, "x-unkept"),
	}
	if value(trailer, "x-kept-trailer") != reply.Kept || value(trailer, "x-unkept-trailer") != reply.Unkept {
		reply.Flaw = fmt.Sprintf("the trailer is %v, but the header %v", trailer, header)
	}
	if err != nil {
		readStatus(&reply, err, value(trailer, "grpc-retry-pushback-ms"))
	}
	return reply, nil
}

func value(md metadata.MD, name string) string {
	if values := md.Get(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// readStatus looks for a refusal in a status.
func readStatus(reply *adaptertest.Reply, err error, pushback string) {
	s := status.Convert(err)
	reply.Status, reply.Body = s.Code().String(), fmt.Sprint(s.Proto())
	if retry, ok := detail[*errdetails.RetryInfo](err); ok {
		reply.RetryAfter = retry.GetRetryDelay().AsDuration()
	}
	info, ok := detail[*errdetails.ErrorInfo](err)
	if !ok || info.GetDomain() != domain {
		return
	}
	if reply.Refused, ok = adaptertest.OutcomeNamed(info.GetReason(), dedupe.Outcome.Reason); !ok {
		reply.Flaw = "the reason is " + info.GetReason()
	}
	if s.Message() == "" {
		reply.Flaw = "the status says nothing"
	}
	wait := "-1"
	if reply.RetryAfter > 0 {
		wait = strconv.FormatInt((reply.RetryAfter + time.Millisecond - 1).Milliseconds(), 10)
	}
	if pushback != wait {
		reply.Flaw = fmt.Sprintf("RetryInfo says %v, the pushback %q", reply.RetryAfter, pushback)
	}
	bad, found := detail[*errdetails.BadRequest](err)
	if wanted := reply.Refused == dedupe.KeyMissing || reply.Refused == dedupe.KeyInvalid; found != wanted {
		reply.Flaw = fmt.Sprintf("the violations are %v", bad)
	}
	for _, violation := range bad.GetFieldViolations() {
		reply.Detail += violation.GetField() + " " + violation.GetDescription()
	}
}
