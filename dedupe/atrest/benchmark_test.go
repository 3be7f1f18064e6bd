package atrest_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/atrest"
)

// page returns about size bytes of JSON as an API answers with: a list of like things, none the same.
func page(size int) []byte {
	var text strings.Builder
	text.WriteString("[")
	for i := 0; text.Len() < size; i++ {
		id := randomBytes[8*i : 8*i+8]
		fmt.Fprintf(&text, `{"id":"%x","amount":%d,"currency":"EUR","status":"booked","created":"2026-09-%02dT12:%02d:00Z"},`,
			id, i*7919%10_000, 1+i%30, i%60)
	}
	return []byte(text.String()[:size])
}

var randomBytes = random(1 << 20)

var sizes = []int{200, 1 << 10, 16 << 10, 256 << 10, 1 << 20}

func benchmark(b *testing.B, codec dedupe.Codec, random bool) {
	b.Helper()
	for _, size := range sizes {
		answer := page(size)
		if random {
			answer = bytes.Clone(randomBytes[:size])
		}
		stored := encode(b, codec, answer)
		b.Run(fmt.Sprintf("encode/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = codec.Encode(digest, fence, answer)
			}
			b.ReportMetric(float64(len(stored))/float64(size), "kept/answer")
		})
		b.Run(fmt.Sprintf("decode/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := codec.Decode(digest, stored); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSeal(b *testing.B) { benchmark(b, seal(b, []atrest.Key{key("2026-09")}), false) }

func BenchmarkCompress(b *testing.B) { benchmark(b, compress(b, 0), false) }

// What does not compress, such as images or what the handler compressed itself.
func BenchmarkCompressInVain(b *testing.B) { benchmark(b, compress(b, 0), true) }

func BenchmarkCompressAndSeal(b *testing.B) {
	benchmark(b, chain(b, compress(b, 1<<10), seal(b, []atrest.Key{key("2026-09")})), false)
}
