package atrest_test

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/atrest"
)

// mustHold fails unless an error of Decode is one that guards understand, and an answer is one.
func mustHold(t *testing.T, got []byte, err error) {
	t.Helper()
	if err == nil && got == nil {
		t.Fatal("a tombstone came out")
	}
	if err != nil && (got != nil || !errors.Is(err, dedupe.ErrRecordUnreadable)) {
		t.Fatalf("got %q, %v", got, err)
	}
}

// Nothing opens but what was sealed.
func FuzzSealDecode(f *testing.F) {
	keys := []atrest.Key{key("2026-09"), key("2026-06")}
	strict, lenient := seal(f, keys), seal(f, keys, atrest.WithUnsealed(time.Now().Add(24*time.Hour)))
	sealed := readGolden(f, "sealed-v1")
	genuine := map[string]string{string(sealed): string(golden), string(readGolden(f, "compressed-and-sealed-v1")): ""}
	for stored := range genuine {
		f.Add([]byte(stored))
	}
	f.Add([]byte(nil))
	f.Add(golden)
	f.Add([]byte("\xf8"))
	f.Add(sealed[:5])
	f.Add(sealed[:14])
	f.Add(sealed[:22+27])
	f.Add(sealed[:22+28])
	f.Add(append([]byte("\xf8seal\x01\x072026-06"), sealed[14:]...))
	f.Add(append([]byte("\xf8seal\x02\x072026-09"), sealed[14:]...))
	f.Add([]byte("\xf8seal\x01\xff"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		got, err := strict.Decode(digest, stored)
		mustHold(t, got, err)
		want, ok := genuine[string(stored)]
		if ok != (err == nil) || ok && want != "" && want != string(got) {
			t.Errorf("%q opens as %q, %v", stored, got, err)
		}
		got, err = lenient.Decode(digest, stored)
		mustHold(t, got, err)
		if err == nil && !ok && (!bytes.Equal(got, stored) || bytes.HasPrefix(stored, []byte("\xf8seal"))) {
			t.Errorf("%q is read as %q", stored, got)
		}
	})
}

// Whatever is read stays within the limit, is kept again in no more bytes than it has itself, and read
// as the same.
func FuzzCompressDecode(f *testing.F) {
	const limit = 1 << 16
	codec := compress(f, 0, atrest.WithLimit(limit))
	f.Add([]byte(nil))
	f.Add(golden)
	f.Add(readGolden(f, "compressed-v1"))
	f.Add([]byte(mark))
	f.Add([]byte(mark + "\x01\x00" + mark))
	f.Add([]byte(mark + "\x02\x01"))
	f.Add([]byte(mark + "\x01\x02"))
	f.Add(compressed(0, 0, deflated(f, nil)))
	f.Add(compressed(math.MaxUint64, 0, []byte{1}))
	f.Add(compressed(limit+1, checksum(make([]byte, limit+1)), deflated(f, make([]byte, limit+1))))
	f.Add(compressed(limit, checksum(make([]byte, limit)), deflated(f, make([]byte, limit))))
	f.Add(compressed(100, checksum(random(100)), deflated(f, random(100))))
	f.Fuzz(func(t *testing.T, stored []byte) {
		got, err := codec.Decode(digest, stored)
		mustHold(t, got, err)
		if err != nil {
			return
		}
		if len(got) > max(limit, len(stored)) {
			t.Fatalf("%d bytes became %d", len(stored), len(got))
		}
		again := encode(t, codec, got)
		if len(again) > len(got) && (len(again) > len(got)+8 || got[0] != mark[0]) {
			t.Fatalf("%d bytes grew to %d", len(got), len(again))
		}
		if read, err := codec.Decode(digest, again); err != nil || !bytes.Equal(read, got) {
			t.Fatalf("%q is read as %q, %v", got, read, err)
		}
	})
}

// A stream with the size and checksum that belong to it is read as package flate alone reads it, or
// refused because it is too large or has something after its end.
func FuzzDeflateStream(f *testing.F) {
	const limit = 1 << 16
	codec := compress(f, 0, atrest.WithLimit(limit))
	for _, data := range [][]byte{nil, answer, golden, random(1000), make([]byte, limit), make([]byte, limit+1)} {
		f.Add(deflated(f, data))
	}
	f.Add(append(deflated(f, golden), 0))
	f.Add(deflated(f, golden)[:10])
	f.Add(readGolden(f, "compressed-v1")[14:])
	f.Fuzz(func(t *testing.T, stream []byte) {
		source := bytes.NewReader(stream)
		want, flateErr := io.ReadAll(io.LimitReader(flate.NewReader(source), limit+1))
		readable := flateErr == nil && len(want) <= limit && source.Len() == 0
		got, err := codec.Decode(digest, compressed(uint64(len(want)), checksum(want), stream))
		mustHold(t, got, err)
		if readable != (err == nil) || readable && !bytes.Equal(got, want) {
			t.Errorf("%q is read as %q, %v; flate reads it as %q, %v", stream, got, err, want, flateErr)
		}
	})
}

// A store that is written by somebody else cannot make a chain give what was not kept.
func FuzzChainDecode(f *testing.F) {
	codec := chain(f, compress(f, 100), seal(f, []atrest.Key{key("2026-09")}))
	genuine, alone := readGolden(f, "compressed-and-sealed-v1"), readGolden(f, "sealed-v1")
	f.Add(genuine)
	f.Add(alone)
	f.Add(readGolden(f, "compressed-v1"))
	f.Add([]byte(nil))
	f.Add(genuine[:len(genuine)-1])
	f.Fuzz(func(t *testing.T, stored []byte) {
		got, err := codec.Decode(digest, stored)
		mustHold(t, got, err)
		if kept := bytes.Equal(stored, genuine) || bytes.Equal(stored, alone); kept != (err == nil) || kept && !bytes.Equal(got, golden) {
			t.Errorf("%q is read as %q, %v", stored, got, err)
		}
	})
}

// Every answer comes back, for its own record only.
func FuzzRoundTrip(f *testing.F) {
	keys := []atrest.Key{key("a")}
	codecs := []dedupe.Codec{
		seal(f, keys),
		seal(f, keys, atrest.WithoutSealing()),
		compress(f, 16),
		chain(f, compress(f, 16), seal(f, keys)),
	}
	f.Add(uint64(0), []byte(nil))
	f.Add(uint64(fence), answer)
	f.Add(uint64(math.MaxUint64), golden)
	f.Add(uint64(1), []byte("\xf8seal"))
	f.Add(uint64(1), []byte("\xf8fla"))
	f.Add(uint64(1), readGolden(f, "compressed-v1"))
	f.Add(uint64(1), readGolden(f, "sealed-v1"))
	f.Fuzz(func(t *testing.T, fence uint64, answer []byte) {
		for i, codec := range codecs {
			stored, err := codec.Encode(digest, fence, answer)
			if err != nil || stored == nil {
				t.Fatalf("codec %d keeps %q, %v", i, stored, err)
			}
			if got, err := codec.Decode(digest, stored); err != nil || got == nil || !bytes.Equal(got, answer) {
				t.Fatalf("codec %d reads %q as %q, %v", i, answer, got, err)
			}
		}
		stored := encode(t, codecs[0], answer)
		if _, err := codecs[0].Decode(dedupe.Digest{}, stored); !errors.Is(err, dedupe.ErrRecordUnreadable) {
			t.Fatalf("it opens for another record: %v", err)
		}
	})
}
