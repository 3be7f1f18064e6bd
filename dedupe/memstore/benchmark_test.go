package memstore_test

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

func BenchmarkClaimRelease(b *testing.B) {
	store, c := memstore.New(), claim(1, 1)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = store.Claim(b.Context(), c)
		_ = store.Release(b.Context(), c.Holder)
	}
}

func BenchmarkClaimReleaseParallel(b *testing.B) {
	store := memstore.New()
	var worker atomic.Uint32
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		n := byte(worker.Add(1))
		c := claim(n, n)
		for pb.Next() {
			_, _ = store.Claim(b.Context(), c)
			_ = store.Release(b.Context(), c.Holder)
		}
	})
}

func BenchmarkClaimHeld(b *testing.B) {
	store, c := memstore.New(), claim(1, 2)
	_, _ = store.Claim(b.Context(), claim(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = store.Claim(b.Context(), c)
	}
}

// BenchmarkClaimReleaseAmong100000 has the other records in the same maps and schedules.
func BenchmarkClaimReleaseAmong100000(b *testing.B) {
	store := memstore.New()
	for i := range uint32(100_000) {
		c := claim(byte(i), 1)
		binary.BigEndian.PutUint32(c.Digest[1:], i)
		c.Lease = time.Hour + time.Duration(i)*time.Millisecond
		_, _ = store.Claim(b.Context(), c)
	}
	c := claim(1, 2)
	c.Digest[31] = 1
	b.ReportAllocs()
	for b.Loop() {
		_, _ = store.Claim(b.Context(), c)
		_ = store.Release(b.Context(), c.Holder)
	}
}

func BenchmarkReplay(b *testing.B) {
	store, c := memstore.New(), claim(1, 1)
	_, _ = store.Claim(b.Context(), c)
	_ = store.Complete(b.Context(), c.Holder, make([]byte, 1024), time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = store.Claim(b.Context(), c)
	}
}

func claim(key, token byte) dedupe.Claim {
	return dedupe.Claim{
		Holder: dedupe.Holder{Digest: dedupe.Digest{key}, Token: dedupe.Token{token}},
		Lease:  time.Minute,
	}
}
