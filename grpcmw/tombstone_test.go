package grpcmw_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
)

// direct calls an interceptor without a server, as one process of a service would.
type direct struct {
	interceptor grpc.UnaryServerInterceptor
	method      string
	handler     func() (any, error)
	runs        *atomic.Int64
}

func newDirect(t testing.TB, config grpcmw.Config, store dedupe.Store, method string, handler func() (any, error)) direct {
	t.Helper()
	return direct{newUnary(t, config, grpcmw.Methods{method: {newOnce(t, store)}}), method, handler, new(atomic.Int64)}
}

func (d direct) call() (any, error) {
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs(keyHeader, "k"))
	return d.interceptor(ctx, transfer("7", "8"), &grpc.UnaryServerInfo{FullMethod: d.method}, func(context.Context, any) (any, error) {
		d.runs.Add(1)
		return d.handler()
	})
}

// checkTombstone checks that a repeat is told that the request ran, and does not run.
func (d direct) checkTombstone(t *testing.T) {
	t.Helper()
	before := d.runs.Load()
	response, err := d.call()
	reply{err: err}.checkRefused(t, dedupe.AnswerUnavailable)
	if response != nil || d.runs.Load() != before {
		t.Errorf("got %v after %d runs", response, d.runs.Load())
	}
}

const elsewhere = "/elsewhere.Service/Method" // nothing about it is registered

// What cannot be kept goes through, and leaves the knowledge that the request ran.
func TestTombstones(t *testing.T) {
	t.Parallel()
	type plain struct{ Text string }
	large := wrapperspb.String(strings.Repeat("x", 2000))
	for name, test := range map[string]struct {
		response any
		method   string
	}{
		"not protobuf":      {plain{"a"}, elsewhere},
		"nil, not protobuf": {(*plain)(nil), elsewhere},
		"too large":         {large, elsewhere},
		"not UTF-8":         {wrapperspb.String("\xff"), elsewhere},
		"not the method's":  {wrapperspb.String("a"), withdraw},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDirect(t, grpcmw.Config{MaxAnswer: 1000}, memstore.New(), test.method, func() (any, error) { return test.response, nil })
			if response, err := d.call(); response != test.response || err != nil {
				t.Errorf("got %v, %v", response, err)
			}
			d.checkTombstone(t)
			d.checkTombstone(t)
		})
	}
	t.Run("error too large", func(t *testing.T) {
		t.Parallel()
		want := status.Error(codes.NotFound, strings.Repeat("x", 2000))
		d := newDirect(t, grpcmw.Config{MaxAnswer: 1000}, memstore.New(), elsewhere, func() (any, error) { return nil, want })
		if _, err := d.call(); err != want {
			t.Errorf("got %v", err)
		}
		d.checkTombstone(t)
	})
}

func TestMaxAnswer(t *testing.T) {
	t.Parallel()
	response := wrapperspb.String(strings.Repeat("x", 2000))
	for most, kept := range map[int]bool{proto.Size(response): true, proto.Size(response) - 1: false} {
		d := newDirect(t, grpcmw.Config{MaxAnswer: most}, memstore.New(), elsewhere, func() (any, error) { return response, nil })
		_, _ = d.call()
		if !kept {
			d.checkTombstone(t)
			continue
		}
		if again, err := d.call(); err != nil || !proto.Equal(again.(proto.Message), response) || d.runs.Load() != 1 {
			t.Errorf("got %v, %v", again, err)
		}
	}
}

// gRPC sends an empty message for nil, typed or not, and so does a replay.
func TestNilResponses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ response, again any }{
		"nil":       {nil, nil},
		"typed nil": {(*wrapperspb.StringValue)(nil), &wrapperspb.StringValue{}},
		"empty":     {&wrapperspb.StringValue{}, &wrapperspb.StringValue{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDirect(t, grpcmw.Config{}, memstore.New(), elsewhere, func() (any, error) { return test.response, nil })
			if response, err := d.call(); response != test.response || err != nil {
				t.Errorf("got %v, %v", response, err)
			}
			response, err := d.call()
			if err != nil || d.runs.Load() != 1 {
				t.Errorf("error %v after %d runs", err, d.runs.Load())
			}
			if message, ok := response.(*wrapperspb.StringValue); test.again == nil && response != nil ||
				test.again != nil && (!ok || message == nil || message.GetValue() != "") {
				t.Errorf("got %#v", response)
			}
		})
	}
	b := bank{unary: func(context.Context, *dynamicpb.Message) (any, error) { return nil, nil }}
	conn := b.guarded(t, grpcmw.Config{}, newOnce(t, memstore.New()))
	pay(t, conn).check(t, 0, false)
	pay(t, conn).check(t, 0, true)
}

// legacy is a message of the first Go API for protobuf.
type legacy struct {
	Value string `protobuf:"bytes,1,opt,name=value,proto3"`
}

func (m *legacy) Reset()         { *m = legacy{} }
func (m *legacy) String() string { return m.Value }
func (*legacy) ProtoMessage()    {}

func TestLegacyMessage(t *testing.T) {
	t.Parallel()
	for _, response := range []*legacy{{Value: "a"}, nil} {
		d := newDirect(t, grpcmw.Config{}, memstore.New(), elsewhere, func() (any, error) { return response, nil })
		if got, err := d.call(); got != any(response) || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
		again, err := d.call()
		if err != nil || d.runs.Load() != 1 {
			t.Fatalf("error %v after %d runs", err, d.runs.Load())
		}
		if message, ok := again.(*legacy); !ok || response != nil && message.Value != "a" || response == nil && message.Value != "" {
			t.Errorf("got %#v", again)
		}
	}
}

// A response whose type is registered nowhere is replayed where a handler returned one before, or
// where the configuration knows the type. Elsewhere the repeat is refused, and does not run.
func TestTypesThatAreNotRegistered(t *testing.T) {
	t.Parallel()
	file := newFile(`
		name: "private.proto" package: "private" syntax: "proto3"
		message_type { name: "Receipt" field { name: "run" json_name: "run" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL } }
	`)
	response := dynamicpb.NewMessage(file.Messages().Get(0))
	response.Set(response.Descriptor().Fields().Get(0), protoreflect.ValueOfInt64(7))
	handler := func() (any, error) { return response, nil }

	store := memstore.New()
	first := newDirect(t, grpcmw.Config{}, store, elsewhere, handler)
	_, _ = first.call()
	types := new(protoregistry.Types)
	if err := types.RegisterMessage(dynamicpb.NewMessageType(response.Descriptor())); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]direct{
		"same process":   first,
		"knows the type": newDirect(t, grpcmw.Config{Types: types}, store, elsewhere, handler),
	} {
		before := d.runs.Load()
		again, err := d.call()
		if err != nil || d.runs.Load() != before {
			t.Fatalf("%s: error %v", name, err)
		}
		if !proto.Equal(again.(proto.Message), response) {
			t.Errorf("%s: got %v", name, again)
		}
	}
	newDirect(t, grpcmw.Config{}, store, elsewhere, handler).checkTombstone(t)
}

// A method that returns another type since a deployment does not replay what it returned before,
// though that type is still known.
func TestTypeOfTheMethodChanged(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	d := newDirect(t, grpcmw.Config{}, store, withdraw, func() (any, error) { return receipt(1), nil })
	_, _ = d.call()
	store2 := &changing{Store: store, claimed: func(c dedupe.Claimed, err error) (dedupe.Claimed, error) {
		c.Answer = bytes.Replace(c.Answer, []byte("bank.v1.Receipt"), []byte("bank.v1.Fields_")[:15], 1)
		return c, err
	}}
	newDirect(t, grpcmw.Config{}, store2, withdraw, nil).checkTombstone(t)
	store2.claimed = func(c dedupe.Claimed, err error) (dedupe.Claimed, error) {
		c.Answer = bytes.Replace(c.Answer, []byte("\x0fbank.v1.Receipt"), []byte("\x10bank.v1.Transfer"), 1)
		return c, err
	}
	newDirect(t, grpcmw.Config{}, store2, withdraw, nil).checkTombstone(t)
	again, err := newDirect(t, grpcmw.Config{}, store, withdraw, nil).call()
	if err != nil || runOf(again.(proto.Message)) != 1 {
		t.Errorf("got %v, %v", again, err)
	}
}

// Whatever is in the store, the handler does not run, and nothing panics.
func TestDamagedAnswers(t *testing.T) {
	t.Parallel()
	var whole []byte
	store := &changing{Store: memstore.New(), complete: func(answer []byte) { whole = answer }}
	d := newDirect(t, grpcmw.Config{}, store, withdraw, func() (any, error) { return receipt(1), nil })
	_, _ = d.call()
	if len(whole) == 0 {
		t.Fatal("nothing was kept")
	}
	damaged := [][]byte{{}, {1}, {2, 1}, {1, 9}, {1, 1}, {1, 2}, append([]byte{2}, whole[1:]...), append(bytes.Clone(whole), 0xff), []byte("HTTP/1.1 200 OK")}
	for i := range whole {
		damaged = append(damaged, whole[:i])
	}
	for _, answer := range damaged {
		store.claimed = func(c dedupe.Claimed, err error) (dedupe.Claimed, error) {
			c.Answer = answer
			return c, err
		}
		response, err := d.call()
		if d.runs.Load() != 1 {
			t.Fatalf("%x: ran again", answer)
		}
		reply{err: err}.checkRefused(t, dedupe.AnswerUnavailable)
		if response != nil {
			t.Errorf("%x: replayed as %v", answer, response)
		}
	}
}
