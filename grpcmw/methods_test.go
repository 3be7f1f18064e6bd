package grpcmw_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// A method's own name counts before its service's, and other methods pass.
func TestMethods(t *testing.T) {
	t.Parallel()
	guard := func() []*dedupe.Guard { return []*dedupe.Guard{newOnce(t, memstore.New())} }
	for _, test := range []struct {
		name    string
		methods grpcmw.Methods
		guarded map[string]bool
	}{
		{"none", nil, map[string]bool{withdraw: false, deposit: false}},
		{"one", grpcmw.Methods{withdraw: guard()}, map[string]bool{withdraw: true, deposit: false}},
		{"service", grpcmw.Methods{"/bank.v1.Bank/*": guard()}, map[string]bool{withdraw: true, deposit: true}},
		{"exempt", grpcmw.Methods{"/bank.v1.Bank/*": guard(), deposit: {}}, map[string]bool{withdraw: true, deposit: false}},
		{"own", grpcmw.Methods{"/bank.v1.Bank/*": nil, deposit: guard()}, map[string]bool{withdraw: false, deposit: true}},
		{"other service", grpcmw.Methods{"/bank.v1.Bank2/*": guard(), "/bank.v1.Ban/*": guard()}, map[string]bool{withdraw: false, deposit: false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b, _ := counting()
			conn := b.serve(t, grpc.UnaryInterceptor(grpcmw.UnaryServerInterceptor(test.methods)))
			for method, guarded := range test.guarded {
				first := call(t.Context(), conn, method, "k", transfer("7", ""))
				again := call(t.Context(), conn, method, "k", transfer("7", ""))
				if first.err != nil || again.replayed() != guarded {
					t.Errorf("%s: error %v, replayed %t", method, first.err, again.replayed())
				}
			}
		})
	}
}

// What is not named is handed on as it is.
func TestUnnamedMethod(t *testing.T) {
	t.Parallel()
	interceptor := grpcmw.UnaryServerInterceptor(nil)
	for _, name := range []string{withdraw, "", "no slash", "/"} {
		got, err := interceptor(t.Context(), "request", &grpc.UnaryServerInfo{FullMethod: name}, func(ctx context.Context, request any) (any, error) {
			if ctx != t.Context() {
				t.Error("another context")
			}
			return request, nil
		})
		if got != "request" || err != nil {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
}

// Methods may be changed once the interceptor is built.
func TestMethodsAreCopied(t *testing.T) {
	t.Parallel()
	for _, name := range []string{withdraw, "/bank.v1.Bank/*"} {
		guards := []*dedupe.Guard{newOnce(t, memstore.New())}
		methods := grpcmw.Methods{name: guards}
		interceptor := grpcmw.UnaryServerInterceptor(methods)
		guards[0] = newSerialize(t, memstore.New(), keyfuncs.Param("id"))
		delete(methods, name)
		b, _ := counting()
		conn := b.serve(t, grpc.UnaryInterceptor(interceptor))
		pay(t, conn)
		pay(t, conn).check(t, 1, true)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	once := newOnce(t, memstore.New())
	serialize := newSerialize(t, memstore.New(), keyfuncs.Param("id"))
	for _, test := range []struct {
		name   string
		guards []*dedupe.Guard
		unary  string
		stream string
	}{
		{withdraw, []*dedupe.Guard{once, serialize}, "", ""},
		{withdraw, []*dedupe.Guard{once, nil}, "guard 2 is nil", "guard 2 is nil"},
		{count, []*dedupe.Guard{serialize}, "", ""},
		{count, []*dedupe.Guard{serialize, once}, "guard 2 is a Once, and the method is a stream", "guard 2 is a Once, and the method is a stream"},
		{"/bank.v1.Bank/*", []*dedupe.Guard{once}, "", "guard 1 is a Once, and may be met by a stream"},
		{"/bank.v1.Bank/*", []*dedupe.Guard{serialize}, "", ""},
		{"/bank.v1.Bank/Withdrawal", nil, "the service has no such method", "the service has no such method"},
		{"/other.Service/Method", []*dedupe.Guard{once}, "", "guard 1 is a Once, and may be met by a stream"},
		{"/other.Service/Method", []*dedupe.Guard{serialize}, "", ""},
		{"", nil, "not the name", "not the name"},
		{"/", nil, "not the name", "not the name"},
		{"*", nil, "not the name", "not the name"},
		{"/*", nil, "not the name", "not the name"},
		{"/*/*", nil, "not the name", "not the name"},
		{"bank.v1.Bank/Withdraw", nil, "not the name", "not the name"},
		{"//Withdraw", nil, "not the name", "not the name"},
		{"//bank.v1.Bank/Withdraw", nil, "not the name", "not the name"},
		{"/bank.v1.Bank/", nil, "not the name", "not the name"},
		{"/bank.v1.Bank/With*", nil, "not the name", "not the name"},
		{"/bank.v1.*/Withdraw", nil, "not the name", "not the name"},
		{"/bank.v1.Bank/Withdraw/", nil, "not the name", "not the name"},
		{"/bank.v1.Bank/With draw", nil, "not the name", "not the name"},
		{"/bank.v1.Bank /Withdraw", nil, "not the name", "not the name"},
	} {
		methods := grpcmw.Methods{test.name: test.guards}
		_, err := grpcmw.Config{}.Unary(methods)
		checkProblem(t, test.name+" unary", err, test.unary)
		_, err = grpcmw.Config{}.Stream(methods)
		checkProblem(t, test.name+" stream", err, test.stream)
	}
}

func checkProblem(t testing.TB, name string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v; want %q", name, err, want)
	}
}

// One error names everything that is wrong.
func TestAllProblems(t *testing.T) {
	t.Parallel()
	_, err := grpcmw.Config{MaxPayload: -1, MaxAnswer: 1<<30 + 1, KeepMetadata: []string{"Cookie"}}.Unary(grpcmw.Methods{
		withdraw: {nil}, "a": nil, "b": nil,
	})
	for _, want := range []string{"MaxPayload is -1", "MaxAnswer is 1073741825", `"Cookie"`, `"` + withdraw + `": guard 1`, `"a"`, `"b"`} {
		checkProblem(t, "all", err, want)
	}
}

func TestConstructorsPanic(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(){
		"unary":  func() { grpcmw.UnaryServerInterceptor(grpcmw.Methods{withdraw: {nil}}) },
		"stream": func() { grpcmw.StreamServerInterceptor(grpcmw.Methods{count: {newOnce(t, memstore.New())}}) },
	} {
		func() {
			defer func() {
				err, _ := recover().(error)
				checkProblem(t, name, err, "guard 1 is")
			}()
			build()
		}()
	}
}
