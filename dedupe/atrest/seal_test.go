package atrest_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/atrest"
)

var answer = []byte(`{"balance":700,"owner":"alice"}`)

// mustRefuse asserts that stored is refused in the way that guards understand, and that the error
// gives nothing away.
func mustRefuse(t *testing.T, codec dedupe.Codec, d dedupe.Digest, stored []byte) error {
	t.Helper()
	got, err := codec.Decode(d, stored)
	if err == nil || !errors.Is(err, dedupe.ErrRecordUnreadable) || got != nil {
		t.Fatalf("%q is read as %q, %v", stored, got, err)
	}
	for _, secret := range [][]byte{answer, key("a").Secret, key("b").Secret} {
		for _, text := range []string{string(secret), fmt.Sprintf("%x", secret), fmt.Sprintf("%d", secret)} {
			if strings.Contains(err.Error(), text) {
				t.Errorf("the error %q contains a secret", err)
			}
		}
	}
	return err
}

func TestSealRoundTrip(t *testing.T) {
	t.Parallel()
	codec := seal(t, []atrest.Key{key("a"), key("b")})
	roundTrip := func(digest dedupe.Digest, fence uint64, answer []byte) bool {
		stored, err := codec.Encode(digest, fence, answer)
		if err != nil || len(stored) != len(answer)+43+len("a") {
			t.Logf("%d bytes became %d, %v", len(answer), len(stored), err)
			return false
		}
		got, err := codec.Decode(digest, stored)
		return err == nil && got != nil && bytes.Equal(got, answer)
	}
	if err := quick.Check(roundTrip, nil); err != nil {
		t.Error(err)
	}
	if !roundTrip(digest, 0, nil) || !roundTrip(digest, 0, bytes.Repeat(answer, 100_000)) {
		t.Error("an empty or a large answer does not come back")
	}
}

func TestSealHides(t *testing.T) {
	t.Parallel()
	codec := seal(t, []atrest.Key{key("a")})
	first, second := encode(t, codec, answer), encode(t, codec, answer)
	if bytes.Contains(first, answer[:4]) || bytes.Contains(first, key("a").Secret[:4]) {
		t.Errorf("%q shows what it is to hide", first)
	}
	head := len("_seal") + 2 + len("a") + 8
	if !bytes.Equal(first[:head], second[:head]) || bytes.Equal(first[head:head+12], second[head:head+12]) {
		t.Error("two answers have one nonce")
	}
}

// An answer opens as it was sealed, for the record that it was sealed for, and not otherwise.
func TestSealBinds(t *testing.T) {
	t.Parallel()
	codec := seal(t, []atrest.Key{key("a"), key("b")})
	stored := encode(t, codec, answer)
	if got, err := codec.Decode(digest, stored); err != nil || !bytes.Equal(got, answer) {
		t.Fatalf("got %q, %v", got, err)
	}

	mustRefuse(t, codec, dedupe.Digest{}, stored)
	for bit := range 256 {
		other := digest
		other[bit/8] ^= 1 << (bit % 8)
		mustRefuse(t, codec, other, stored)
	}
	for bit := range len(stored) * 8 {
		changed := bytes.Clone(stored)
		changed[bit/8] ^= 1 << (bit % 8)
		mustRefuse(t, codec, digest, changed)
	}
	for size := range stored {
		mustRefuse(t, codec, digest, stored[:size])
	}
	mustRefuse(t, codec, digest, append(bytes.Clone(stored), 0))
	mustRefuse(t, codec, digest, append(bytes.Clone(stored), stored...))

	idAt := len("_seal") + 2
	otherKey := bytes.Clone(stored)
	otherKey[idAt] = 'b'
	mustRefuse(t, codec, digest, otherKey)
	otherFence := bytes.Clone(stored)
	binary.BigEndian.PutUint64(otherFence[idAt+1:], fence+1)
	mustRefuse(t, codec, digest, otherFence)
}

func TestSealRefuses(t *testing.T) {
	t.Parallel()
	codec := seal(t, []atrest.Key{key("a")})
	stored := encode(t, codec, answer)
	with := func(at int, b ...byte) []byte { return slices.Replace(bytes.Clone(stored), at, at+1, b...) }
	imposter := key("a")
	imposter.Secret = key("b").Secret
	withID := func(id string) []byte {
		return append(append([]byte("\xf8seal\x01"), byte(len(id))), id+string(stored[8:])...)
	}
	for name, test := range map[string]struct {
		codec  dedupe.Codec
		stored []byte
		says   string
	}{
		"unsealed":              {codec, answer, "not sealed"},
		"empty":                 {codec, []byte{}, "not sealed"},
		"nil":                   {codec, nil, "not sealed"},
		"newer version":         {codec, with(5, 2), "version 2"},
		"version 0":             {codec, with(5, 0), "version 0"},
		"no ID":                 {codec, withID(""), "no valid ID"},
		"ID of 64 bytes":        {codec, withID(strings.Repeat("a", 64)), "not in the ring"},
		"ID of 65 bytes":        {codec, withID(strings.Repeat("a", 65)), "no valid ID"},
		"ID of 255 bytes":       {codec, withID(strings.Repeat("a", 255)), "no valid ID"},
		"ID that is no text":    {codec, withID("a\n"), "no valid ID"},
		"ID longer than record": {codec, with(6, 255), "cut short"},
		"key is not there":      {seal(t, []atrest.Key{key("b")}), stored, `"a", which is not in the ring`},
		"other secret":          {seal(t, []atrest.Key{imposter}), stored, "does not open"},
		"mark only":             {codec, stored[:5], "cut short"},
		"no room for a tag":     {codec, stored[:16+27], "cut short"},
		"empty ciphertext":      {codec, stored[:16+28], "does not open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := mustRefuse(t, test.codec, digest, test.stored); !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q does not say %q", err, test.says)
			}
		})
	}
}

// The time in which unsealed answers are accepted ends by itself, exactly then.
func TestWithUnsealed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys := []atrest.Key{key("a")}
		codec := seal(t, keys, atrest.WithUnsealed(time.Now().Add(time.Hour)))
		stored := encode(t, codec, answer)
		if bytes.Contains(stored, answer) {
			t.Error("it seals nothing")
		}
		accepts := func(kept []byte) {
			t.Helper()
			if got, err := codec.Decode(digest, kept); err != nil || got == nil || !bytes.Equal(got, kept) {
				t.Errorf("%q is read as %q, %v", kept, got, err)
			}
		}
		time.Sleep(time.Hour - time.Nanosecond)
		accepts(answer)
		accepts([]byte{}) // what Guard.Run keeps
		accepts([]byte("seal"))
		mustRefuse(t, codec, dedupe.Digest{}, stored)
		for size := 1; size < len(stored); size++ { // also within the mark
			mustRefuse(t, codec, digest, stored[:size])
		}
		time.Sleep(time.Nanosecond)
		mustRefuse(t, codec, digest, answer)
		mustRefuse(t, codec, digest, []byte{})
		if got, err := codec.Decode(digest, stored); err != nil || !bytes.Equal(got, answer) {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// Whatever answer a codec that does not seal is given comes back, also one that looks sealed.
func TestWithoutSealing(t *testing.T) {
	t.Parallel()
	keys := []atrest.Key{key("a")}
	idle, sealing := seal(t, keys, atrest.WithoutSealing()), seal(t, keys)
	for _, answer := range [][]byte{answer, nil, {}, []byte("\xf8"), []byte("\xf8sea"), []byte("\xf8seal"), []byte("\xf8seam"), encode(t, sealing, answer)} {
		stored := encode(t, idle, answer)
		if looksSealed := len(answer) > 0 && answer[0] == 0xf8 && !bytes.Equal(answer, []byte("\xf8seam")); bytes.Equal(stored, answer) == looksSealed {
			t.Errorf("%q is kept as %q", answer, stored)
		}
		if got, err := idle.Decode(digest, stored); err != nil || got == nil || !bytes.Equal(got, answer) {
			t.Errorf("%q is read as %q, %v", answer, got, err)
		}
	}
	if got, err := idle.Decode(digest, encode(t, sealing, answer)); err != nil || !bytes.Equal(got, answer) {
		t.Errorf("a sealed answer is read as %q, %v", got, err)
	}
}

// Stored bytes and answers are shared: with the store, and among those that wait.
func TestArgumentsStay(t *testing.T) {
	t.Parallel()
	codec := chain(t, compress(t, 0), seal(t, []atrest.Key{key("a")}))
	given := bytes.Repeat(answer, 10)
	stored := encode(t, codec, given)
	kept := bytes.Clone(stored)
	got, err := codec.Decode(digest, stored)
	if err != nil || !bytes.Equal(got, given) || !bytes.Equal(given, bytes.Repeat(answer, 10)) {
		t.Errorf("got %q, %v", got, err)
	}
	mustRefuse(t, codec, dedupe.Digest{}, stored)
	if !bytes.Equal(stored, kept) {
		t.Error("Decode changed what is stored")
	}
}
