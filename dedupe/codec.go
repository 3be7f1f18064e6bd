package dedupe

import (
	"errors"
	"fmt"
)

// Codec changes answers on their way to the store and back. It is safe for concurrent use, leaves its
// arguments alone, and may return them.
type Codec interface {
	// Encode returns what is kept of an answer. digest and fence name the record that it is for. It
	// is called once for each answer, and a panic counts as an error.
	Encode(digest Digest, fence uint64, answer []byte) ([]byte, error)

	// Decode returns the answer of which stored is what Encode returned, perhaps in another process
	// or version. Of anything else it returns an error, and never another answer.
	Decode(digest Digest, stored []byte) ([]byte, error)
}

// encode returns what is kept of an answer, and what is to be done with it.
func (l *Lease) encode(answer []byte, verdict Verdict) ([]byte, Verdict) {
	if verdict != VerdictKeep {
		return nil, verdict
	}
	if answer == nil {
		answer = []byte{}
	}
	codec := l.guard.codec
	if codec == nil {
		return answer, verdict
	}
	stored, err := encodeBy(codec, &l.keys[0], answer)
	if err != nil || stored == nil {
		l.emit(Event{Kind: EventSettleFailed, Err: errors.Join(errEncode, err)})
		return nil, VerdictTombstone // it ran, and must not run again
	}
	return stored, verdict
}

// encodeBy turns a panic into an error: the lease has to be settled.
func encodeBy(codec Codec, c *claimant, answer []byte) (stored []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return codec.Encode(c.digest, c.fence, answer)
}

// decode returns the answer in what was kept.
func (l *Lease) decode(stored []byte) ([]byte, error) {
	if l.guard.codec == nil {
		return stored, nil
	}
	return l.guard.codec.Decode(l.keys[0].digest, stored)
}

var errEncode = errors.New("the answer cannot be encoded, and is not kept")
