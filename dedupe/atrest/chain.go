package atrest

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/dedupe"
)

// chain runs codecs in order to keep an answer, and in reverse order to give it again.
type chain []dedupe.Codec

// Chain returns a codec that has an answer changed by each of codecs in turn, and changed back in
// reverse. Compress comes before Seal, because sealed bytes do not get smaller; the other order is
// refused, as are a nil codec and none at all. Errors are those of the codecs.
//
// It is safe for concurrent use if they are.
func Chain(codecs ...dedupe.Codec) (dedupe.Codec, error) {
	var found []error
	if len(codecs) == 0 {
		found = append(found, errors.New("there is no codec; give one at least"))
	}
	sealed := 0
	for i, codec := range codecs {
		switch codec.(type) {
		case nil:
			found = append(found, fmt.Errorf("codec %d is nil; leave it out", i+1))
		case *sealer:
			sealed = i + 1
		case *compressor:
			if sealed > 0 {
				found = append(found, fmt.Errorf("codec %d compresses what codec %d sealed, in vain; give Compress before Seal", i+1, sealed))
			}
		}
	}
	if len(found) > 0 {
		return nil, invalid("Chain", found)
	}
	return append(chain(nil), codecs...), nil
}

func (c chain) Encode(digest dedupe.Digest, fence uint64, answer []byte) ([]byte, error) {
	for _, codec := range c {
		var err error
		if answer, err = codec.Encode(digest, fence, answer); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

func (c chain) Decode(digest dedupe.Digest, stored []byte) ([]byte, error) {
	for i := len(c) - 1; i >= 0; i-- {
		var err error
		if stored, err = c[i].Decode(digest, stored); err != nil {
			return nil, err
		}
	}
	return stored, nil
}
