package atrest_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/atrest"
)

// suffix is a codec that shows where in a chain it stands.
type suffix struct {
	text string
	err  error
}

func (s suffix) Encode(_ dedupe.Digest, _ uint64, answer []byte) ([]byte, error) {
	return append(slices.Clip(answer), s.text...), s.err
}

func (s suffix) Decode(_ dedupe.Digest, stored []byte) ([]byte, error) {
	answer, ok := bytes.CutSuffix(stored, []byte(s.text))
	if !ok {
		return nil, errors.New("no " + s.text)
	}
	return answer, s.err
}

func TestChainOrder(t *testing.T) {
	t.Parallel()
	codec := chain(t, suffix{text: "1"}, suffix{text: "2"}, suffix{text: "3"})
	if stored := encode(t, codec, []byte("answer")); string(stored) != "answer123" {
		t.Errorf("kept as %q", stored)
	}
	if got, err := codec.Decode(digest, []byte("answer123")); err != nil || string(got) != "answer" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := codec.Decode(digest, []byte("answer12")); err == nil || err.Error() != "no 3" || got != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestChainErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, codec := range []dedupe.Codec{
		chain(t, suffix{text: "1", err: broken}, suffix{text: "2"}),
		chain(t, suffix{text: "1"}, suffix{text: "2", err: broken}),
	} {
		if stored, err := codec.Encode(digest, fence, answer); !errors.Is(err, broken) || stored != nil {
			t.Errorf("kept as %q, %v", stored, err)
		}
		if got, err := codec.Decode(digest, []byte("answer12")); !errors.Is(err, broken) || got != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// The caller's slice is its own.
func TestChainIsCopied(t *testing.T) {
	t.Parallel()
	codecs := []dedupe.Codec{suffix{text: "1"}}
	codec := chain(t, codecs...)
	codecs[0] = suffix{text: "2"}
	if stored := encode(t, codec, nil); string(stored) != "1" {
		t.Errorf("kept as %q", stored)
	}
}

// Compression comes first: sealed bytes would not get smaller.
func TestCompressedThenSealed(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat(answer, 100)
	codec := chain(t, compress(t, 1000), seal(t, []atrest.Key{key("a")}))
	stored := encode(t, codec, text)
	if len(stored) > len(text)/5 || !bytes.HasPrefix(stored, []byte("\xf8seal")) {
		t.Errorf("%d bytes are kept as %d: %q", len(text), len(stored), stored)
	}
	if got, err := codec.Decode(digest, stored); err != nil || !bytes.Equal(got, text) {
		t.Errorf("got %q, %v", got, err)
	}
	mustRefuse(t, codec, dedupe.Digest{}, stored)
}
