package atrest_test

import (
	"crypto/sha256"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/atrest"
)

// key returns a key that is always the same for an ID.
func key(id string) atrest.Key {
	secret := sha256.Sum256([]byte("not a secret " + id))
	return atrest.Key{ID: id, Secret: secret[:]}
}

func seal(t testing.TB, keys []atrest.Key, options ...atrest.SealOption) dedupe.Codec {
	t.Helper()
	return must(t)(atrest.Seal(keys, options...))
}

func compress(t testing.TB, above int, options ...atrest.CompressOption) dedupe.Codec {
	t.Helper()
	return must(t)(atrest.Compress(above, options...))
}

func chain(t testing.TB, codecs ...dedupe.Codec) dedupe.Codec {
	t.Helper()
	return must(t)(atrest.Chain(codecs...))
}

func must(t testing.TB) func(dedupe.Codec, error) dedupe.Codec {
	t.Helper()
	return func(codec dedupe.Codec, err error) dedupe.Codec {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return codec
	}
}

var digest = dedupe.Digest{1, 2, 3, 31: 32}

const fence = 1_790_000_000_000_000

func encode(t testing.TB, codec dedupe.Codec, answer []byte) []byte {
	t.Helper()
	stored, err := codec.Encode(digest, fence, answer)
	if err != nil {
		t.Fatal(err)
	}
	if stored == nil {
		t.Fatal("an answer became a tombstone")
	}
	return stored
}
