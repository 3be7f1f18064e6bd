package grpcmw_test

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
)

func TestKeepMetadataNames(t *testing.T) {
	t.Parallel()
	for name, problem := range map[string]string{
		"x-balance": "", "X-Balance": "", "receipt-bin": "", "a_b.c-1": "",
		"": "name of metadata", "a b": "name of metadata", ":path": "name of metadata", "*": "name of metadata", "ä": "name of metadata",
		"grpc-status": "gRPC's own", "Grpc-Retry-Pushback-Ms": "gRPC's own",
		"Set-Cookie": "credentials", "cookie": "credentials", "authorization": "credentials", "www-authenticate": "credentials",
		"content-type": "transport", "te": "transport", "user-agent": "transport",
		"date": "anew", "Idempotent-Replayed": "tells a replay",
	} {
		_, err := grpcmw.Config{KeepMetadata: []string{name}}.Unary(nil)
		checkProblem(t, name, err, problem)
	}
}

// Verdicts on the request are kept, everything else runs again.
func TestKeptCodes(t *testing.T) {
	t.Parallel()
	kept := map[codes.Code]bool{
		codes.OK: true, codes.InvalidArgument: true, codes.NotFound: true, codes.AlreadyExists: true,
		codes.FailedPrecondition: true, codes.OutOfRange: true,
	}
	every := []codes.Code{99}
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		every = append(every, code)
	}
	for _, code := range every {
		if got := grpcmw.DefaultKeep(code); got != kept[code] {
			t.Errorf("DefaultKeep(%v) = %t", code, got)
		}
		for name, keep := range map[string]func(codes.Code) bool{
			"default": nil, "opposite": func(c codes.Code) bool { return !kept[c] },
		} {
			t.Run(name+" "+code.String(), func(t *testing.T) {
				t.Parallel()
				var runs atomic.Int64
				b := bank{unary: func(context.Context, *dynamicpb.Message) (any, error) {
					return receipt(runs.Add(1)), status.Error(code, "verdict")
				}}
				conn := b.guarded(t, grpcmw.Config{Keep: keep}, newOnce(t, memstore.New()))
				pay(t, conn)
				again := pay(t, conn)
				want := int64(2)
				if kept[code] == (keep == nil) {
					want = 1
				}
				if runs.Load() != want || again.replayed() != (want == 1) || status.Code(again.err) != code {
					t.Errorf("ran %d times, then %v, replayed %t", runs.Load(), again.err, again.replayed())
				}
			})
		}
	}
}
