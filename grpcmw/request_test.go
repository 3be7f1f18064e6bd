package grpcmw_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

func TestRequest(t *testing.T) {
	t.Parallel()
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "v")
	ctx = metadata.NewIncomingContext(ctx, metadata.MD{
		"two": {"a", "b"}, "raw-bin": {"\x00\xff"}, ":authority": {"bank.example"},
	})
	r := grpcmw.NewRequest(ctx, withdraw, transfer("7", "8"))
	if r.Operation() != withdraw {
		t.Errorf("operation %q", r.Operation())
	}
	if r.Value(key{}) != "v" || r.Context() != ctx {
		t.Error("not the context")
	}
	for name, want := range map[string][]string{
		"two": {"a", "b"}, "TWO": {"a", "b"}, "Raw-Bin": {"\x00\xff"}, "host": {"bank.example"}, "three": nil,
	} {
		if got := r.Header(name); !slices.Equal(got, want) {
			t.Errorf("header %s: %q", name, got)
		}
	}
	if got := grpcmw.NewRequest(t.Context(), withdraw, nil).Header("two"); got != nil {
		t.Errorf("header without metadata: %q", got)
	}
	for method, safe := range map[string]bool{withdraw: false, look: true, "/no.Service/Method": false, "": false} {
		if got := grpcmw.NewRequest(ctx, method, nil).Safe(); got != safe {
			t.Errorf("safe %q: %t", method, got)
		}
	}
}

func TestPayload(t *testing.T) {
	t.Parallel()
	tags := make([]string, 50)
	for i := range tags {
		tags[i] = `tags { key: "` + strings.Repeat("k", i+1) + `" value: "v" }`
	}
	text := strings.Join(tags, "\n")
	first, err := grpcmw.NewRequest(t.Context(), withdraw, newMessage("Transfer", text)).Payload()
	if err != nil || first.Target != withdraw || first.ContentType != "bank.v1.Transfer" {
		t.Fatalf("got %q, %q, %v", first.Target, first.ContentType, err)
	}
	read := newMessage("Transfer", "")
	if err := proto.Unmarshal(first.Body, read); err != nil || !proto.Equal(read, newMessage("Transfer", text)) {
		t.Errorf("the body is not the message: %v", err)
	}
	slices.Reverse(tags)
	for range 10 {
		again, _ := grpcmw.NewRequest(t.Context(), withdraw, newMessage("Transfer", strings.Join(tags, "\n"))).Payload()
		if !bytes.Equal(first.Body, again.Body) {
			t.Fatal("the same message gives other bytes")
		}
	}
	if other, _ := grpcmw.NewRequest(t.Context(), withdraw, transfer("7", "")).Payload(); bytes.Equal(first.Body, other.Body) {
		t.Error("another message gives the same bytes")
	}
}

func TestMaxPayload(t *testing.T) {
	t.Parallel()
	message := transfer("7", strings.Repeat("x", 1000))
	limit := proto.Size(message)
	for most, refused := range map[int]bool{limit: false, limit - 1: true} {
		b, runs := counting()
		conn := b.guarded(t, grpcmw.Config{MaxPayload: most}, newOnce(t, memstore.New()))
		got := call(t.Context(), conn, withdraw, "k", message)
		if refused {
			got.checkRefused(t, dedupe.PayloadTooLarge)
		} else {
			got.check(t, 1, false)
		}
		if ran := runs.Load() == 1; ran == refused {
			t.Errorf("limit %d: ran %t", most, ran)
		}
	}
	b, _ := counting() // under a Serialize nothing is compared
	conn := b.guarded(t, grpcmw.Config{MaxPayload: 1}, newSerialize(t, memstore.New(), keyfuncs.Param("id")))
	call(t.Context(), conn, withdraw, "", message).check(t, 1, false)
}

// A method without side effects passes, unless the guard was told otherwise.
func TestSafeMethod(t *testing.T) {
	t.Parallel()
	for _, options := range [][]dedupe.Option{nil, {dedupe.WithSafeMethods()}} {
		b, _ := counting()
		conn := b.serve(t, grpc.UnaryInterceptor(grpcmw.UnaryServerInterceptor(grpcmw.Methods{
			"/bank.v1.Bank/*": {newOnce(t, memstore.New(), options...)},
		})))
		call(t.Context(), conn, look, "k", transfer("7", "")).check(t, 1, false)
		again := call(t.Context(), conn, look, "k", transfer("7", ""))
		if options == nil {
			again.check(t, 2, false)
		} else {
			again.check(t, 1, true)
		}
	}
}

func TestMessageThatIsNotProtobuf(t *testing.T) {
	t.Parallel()
	interceptor := grpcmw.UnaryServerInterceptor(grpcmw.Methods{"/no.Service/*": {newOnce(t, memstore.New())}})
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(keyHeader, "k"))
	_, err := interceptor(ctx, struct{}{}, &grpc.UnaryServerInfo{FullMethod: "/no.Service/Method"}, func(context.Context, any) (any, error) {
		t.Error("the handler ran")
		return nil, nil
	})
	if !errors.Is(err, dedupe.ErrKeyInvalid) {
		t.Errorf("error %v", err)
	}
}
