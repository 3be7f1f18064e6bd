package grpcmw

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/dedupe"
)

// NewRequest returns a unary request as key functions see it, with the defaults of [Config]: for
// tests of a key function of your own. Metadata is taken from ctx as in a server
// (metadata.NewIncomingContext).
func NewRequest(ctx context.Context, method string, message any) dedupe.Request {
	config, _ := Config{}.withDefaults()
	return &request{ctx: ctx, config: &config, method: findMethod(method), message: message}
}

// request is a [dedupe.Request].
type request struct {
	ctx     context.Context //nolint:containedctx // Request.Context has to return it
	config  *Config
	method  *method
	message any
	stream  bool // there is no message
}

func (r *request) Context() context.Context { return r.ctx }
func (r *request) Operation() string        { return r.method.name }
func (r *request) Safe() bool               { return r.method.safe }
func (r *request) Value(key any) any        { return r.ctx.Value(key) }

func (r *request) Header(name string) []string {
	if strings.EqualFold(name, "Host") { // what HTTP/1 calls it
		name = ":authority"
	}
	return metadata.ValueFromIncomingContext(r.ctx, name)
}

func (r *request) Param(name string) (string, error) { return r.text(name, param) }

func (r *request) Field(path string) (string, error) { return r.text(path, field) }

// text returns what find finds in the message under a name.
func (r *request) text(name string, find func(protoreflect.Message, string) (text, problem string)) (string, error) {
	message, problem := r.read()
	if problem != "" {
		return "", &dedupe.KeyError{Source: "field " + name, Problem: "cannot be found, because the message " + problem}
	}
	text, problem := find(message.ProtoReflect(), name)
	if problem != "" {
		return "", &dedupe.KeyError{Source: "field " + name, Problem: problem}
	}
	return text, nil
}

func (r *request) Payload() (dedupe.Payload, error) {
	message, problem := r.read()
	if problem != "" {
		return dedupe.Payload{}, &dedupe.KeyError{Source: "message", Problem: problem}
	}
	if size := proto.Size(message); size > r.config.MaxPayload {
		return dedupe.Payload{}, fmt.Errorf("%w: the message is over %d bytes", dedupe.ErrPayloadTooLarge, r.config.MaxPayload)
	}
	body, err := proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.Marshal(message)
	if err != nil {
		return dedupe.Payload{}, err
	}
	return dedupe.Payload{
		Target:      r.method.name,
		ContentType: string(message.ProtoReflect().Descriptor().FullName()),
		Body:        body,
	}, nil
}

// read returns the message, or why there is none to be read.
func (r *request) read() (message proto.Message, problem string) {
	if r.stream {
		return nil, "comes only after the stream was let in"
	}
	message, ok := messageOf(r.message)
	if !ok {
		return nil, "is not of protobuf"
	}
	return message, ""
}

// messageOf returns what gRPC's own codec would marshal.
func messageOf(v any) (proto.Message, bool) {
	switch v := v.(type) {
	case proto.Message:
		return v, true
	case protoadapt.MessageV1:
		return protoadapt.MessageV2Of(v), true
	default:
		return nil, false
	}
}
