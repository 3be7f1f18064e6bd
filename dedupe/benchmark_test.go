package dedupe_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

// trivial is a request that costs as little as can be: what is measured is the engine and its store.
type trivial struct{ request }

var answered = []byte("answer")

func (*trivial) Answer(bool) ([]byte, dedupe.Verdict) { return answered, dedupe.VerdictKeep }
func (*trivial) Replay([]byte) error                  { return nil }
func (t *trivial) Param(name string) (string, error)  { return t.params[name], nil }

func benchmark(b *testing.B, key func(i int) string, guards ...*dedupe.Guard) {
	b.Helper()
	ctx := context.Background()
	call := &trivial{*ask("7")}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		call.params["key"] = key(i)
		if err := dedupe.Do(ctx, guards, call); err != nil {
			b.Fatal(err)
		}
	}
}

func oneKey(int) string { return "7" }

func BenchmarkUnguarded(b *testing.B) { benchmark(b, oneKey) }

func BenchmarkSerialize(b *testing.B) { benchmark(b, oneKey, serialize(b, memstore.New())) }

func BenchmarkSerializeTwoKeys(b *testing.B) {
	guard := serialize(b, memstore.New(), dedupe.WithAlso(param("caller")))
	benchmark(b, oneKey, guard)
}

func BenchmarkOnceFresh(b *testing.B) { benchmark(b, strconv.Itoa, once(b, memstore.New())) }

func BenchmarkOnceReplay(b *testing.B) { benchmark(b, oneKey, once(b, memstore.New())) }

func BenchmarkOnceAndSerialize(b *testing.B) {
	store := memstore.New()
	benchmark(b, strconv.Itoa, once(b, store), inDomain(b, store, "account"))
}

func BenchmarkSerializeParallel(b *testing.B) {
	guards := []*dedupe.Guard{serialize(b, memstore.New())}
	var worker atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		call := &trivial{*ask(strconv.FormatInt(worker.Add(1), 10))}
		for pb.Next() {
			if err := dedupe.Do(context.Background(), guards, call); err != nil {
				b.Error(err)
			}
		}
	})
}
