package grpcmw_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// newBoundOnce is a Once that tells callers apart.
func newBoundOnce(t *testing.T, options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Once(memstore.New(), keyfuncs.Bearer(), keyfuncs.Header(keyHeader), options...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// as is a context for calls of a caller, with more metadata.
func as(t *testing.T, caller string, pairs ...string) context.Context {
	t.Helper()
	return metadata.AppendToOutgoingContext(t.Context(), append(pairs, "authorization", "Bearer "+caller)...)
}

// What a repeat must bring unchanged, by fingerprint. A repeat that does is answered by the first; one that
// does not is a mismatch, in flight and later; and neither concerns another caller with the same key.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	message := func(text string) *dynamicpb.Message { return newMessage("Transfer", text) }
	type attempt struct {
		message  *dynamicpb.Message
		metadata []string
	}
	for name, test := range map[string]struct {
		option        []dedupe.Option
		first, repeat attempt
		others        []attempt
	}{
		"exact": {
			nil,
			attempt{message: message(`id: "7" amount: 200 tags { key: "a" value: "1" } tags { key: "b" value: "2" }`)},
			attempt{message: message(`tags { key: "b" value: "2" } tags { key: "a" value: "1" } id: "7" amount: 200`)},
			[]attempt{{message: message(`id: "7" amount: 300 tags { key: "a" value: "1" } tags { key: "b" value: "2" }`)}, {message: message(`id: "7"`)}},
		},
		"Fields": {
			[]dedupe.Option{dedupe.WithFingerprint(keyfuncs.Fields("id", "amount"))},
			attempt{message: message(`id: "7" amount: 200 to: "8"`)},
			attempt{message: message(`id: "7" amount: 200 to: "9"`)},
			[]attempt{{message: message(`id: "7" amount: 300 to: "8"`)}, {message: message(`id: "8" amount: 200 to: "8"`)}},
		},
		"All": {
			[]dedupe.Option{dedupe.WithFingerprint(keyfuncs.All(
				keyfuncs.OptionalHeaders("Api-Version"), keyfuncs.ContentType, keyfuncs.Fields("amount"), keyfuncs.OptionalFields("to")))},
			attempt{message(`amount: 200`), []string{"api-version", "2"}},
			attempt{message(`amount: 200 id: "8"`), []string{"api-version", "2"}},
			[]attempt{{message(`amount: 200`), nil}, {message(`amount: 200`), []string{"api-version", "1"}}, {message(`amount: 200 to: "8"`), []string{"api-version", "2"}}},
		},
		"Body": {
			[]dedupe.Option{dedupe.WithFingerprint(keyfuncs.Body)},
			attempt{message: message(`id: "7"`)},
			attempt{message: message(`id: "7"`)},
			[]attempt{{message: message(`id: "8"`)}, {message: message(``)}},
		},
		"Multipart": { // which messages are not
			[]dedupe.Option{dedupe.WithFingerprint(keyfuncs.Multipart)},
			attempt{message: message(`id: "7"`)},
			attempt{message: message(`id: "7"`)},
			[]attempt{{message: message(`id: "8"`)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			var runs atomic.Int64
			b := bank{unary: func(ctx context.Context, _ *dynamicpb.Message) (any, error) {
				run := runs.Add(1)
				if run == 1 {
					g.pass(ctx)
				}
				return receipt(run), nil
			}}
			conn := b.guarded(t, grpcmw.Config{}, newBoundOnce(t, test.option...))
			try := func(caller string, a attempt) reply {
				return call(as(t, caller, a.metadata...), conn, withdraw, "k", a.message)
			}

			first := make(chan reply, 1)
			go func() { first <- try("anna", test.first) }()
			receive(t, g.entered, "the first call")
			try("anna", test.repeat).checkRefused(t, dedupe.InFlight)
			for _, other := range test.others {
				try("anna", other).checkRefused(t, dedupe.KeyReused)
			}
			try("bert", test.others[0]).check(t, 2, false)

			close(g.leave)
			receive(t, first, "the first answer").check(t, 1, false)
			try("anna", test.repeat).check(t, 1, true)
			for _, other := range test.others {
				got := try("anna", other)
				got.checkRefused(t, dedupe.KeyReused)
				if status.Code(got.err) != codes.FailedPrecondition {
					t.Errorf("got %v", got.err)
				}
			}
			try("carl", test.first).check(t, 3, false)
			try("bert", test.others[0]).check(t, 2, true)
			if runs.Load() != 3 {
				t.Errorf("ran %d times", runs.Load())
			}
		})
	}
}

// Calls that a fingerprint cannot tell from others do not run, and leave nothing behind.
func TestFingerprintsThatFail(t *testing.T) {
	t.Parallel()
	message := func(text string) *dynamicpb.Message { return newMessage("Transfer", text) }
	for name, test := range map[string]struct {
		fingerprint keyfuncs.Fingerprint
		bad         *dynamicpb.Message
		outcome     dedupe.Outcome
	}{
		"no field":       {keyfuncs.Fields("id"), message(`to: "8"`), dedupe.KeyInvalid},
		"no such field":  {keyfuncs.Fields("ident"), message(`id: "7"`), dedupe.KeyInvalid},
		"0":              {keyfuncs.OptionalFields("amount"), message(`id: "7" amount: 0`), dedupe.KeyInvalid},
		"map":            {keyfuncs.OptionalFields("tags"), message(`id: "7"`), dedupe.KeyInvalid},
		"no metadata":    {keyfuncs.Headers("api-version"), message(`id: "7"`), dedupe.KeyInvalid},
		"large":          {keyfuncs.Body, message(`id: "` + strings.Repeat("7", 100) + `"`), dedupe.PayloadTooLarge},
		"large for type": {keyfuncs.ContentType, message(`id: "` + strings.Repeat("7", 100) + `"`), dedupe.PayloadTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, runs := counting()
			conn := b.guarded(t, grpcmw.Config{MaxPayload: 64}, newBoundOnce(t, dedupe.WithFingerprint(test.fingerprint)))
			call(as(t, "anna"), conn, withdraw, "k", test.bad).checkRefused(t, test.outcome)
			if runs.Load() != 0 {
				t.Error("it ran")
			}
		})
	}
}
