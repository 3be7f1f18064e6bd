package atrest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// A sealed answer, version 1:
//
//	mark        5 bytes   F8 "seal"
//	version     1 byte    01
//	ID's length 1 byte    01 to 40 (hexadecimal)
//	ID          of the key that sealed
//	fence       8 bytes   big endian
//	nonce      12 bytes   random
//	ciphertext  as long as the answer
//	tag        16 bytes
//
// The associated data is everything before the nonce, and then the 32 bytes of the digest. A layout
// that this code would misread gets the next version; an answer of version 1 stays readable.
const (
	sealMark    = "\xf8seal"
	sealVersion = 1
	fenceSize   = 8
)

// SealOption changes how [Seal] goes about answers that are not sealed.
type SealOption func(*sealer)

// WithUnsealed accepts answers that were kept before sealing was turned on, until the moment given:
// the end of the rollout plus the guard's retention. Until then whoever writes the store can put an
// answer of their own in the place of a sealed one, and its damage may go unnoticed; this process's
// clock ends that, so that the option may be forgotten in the code. At most 100 days ahead; the
// default is to refuse them with [dedupe.ErrRecordUnreadable].
func WithUnsealed(until time.Time) SealOption {
	return func(s *sealer) { s.unsealedUntil, s.untilGiven = until, true }
}

// WithoutSealing opens answers that are sealed, accepts those that are not, and seals none. It comes
// first when sealing is turned on and last when it is turned off, while some processes that share the
// store seal and some do not. It protects nothing. The default is to seal.
func WithoutSealing() SealOption { return func(s *sealer) { s.idle = true } }

// maxUnsealed is the longest retention, 90 days, and ten days for a rollout.
const maxUnsealed = 100 * 24 * time.Hour

// sealer is what Seal returns. It does not change after that.
type sealer struct {
	ring          ring
	unsealedUntil time.Time
	untilGiven    bool
	idle          bool
}

// Seal returns a codec that encrypts answers and authenticates them, with AES-256-GCM and a random
// nonce for each ([cipher.NewGCMWithRandomNonce]). The first key seals, and all of them open. What is
// authenticated with an answer is the version, the key's ID, the record's fence and its digest: an
// answer opens under the key that it was kept for, and under no other.
//
// One key must not seal more than 2³² answers, over all processes that have it: at 1,000 answers per
// second that is 49 days, at 50 per second it is 2.7 years. Rotate before, and whenever somebody who
// knew the key leaves. The package comment says how, without refusing an answer.
//
// Sealing adds 43 bytes and the ID to an answer. What does not open is refused with an error that
// matches [dedupe.ErrRecordUnreadable] and contains neither secret nor answer. The error of Seal names
// every bad key by place and ID, what is wrong and the fix. The codec is safe for concurrent use.
func Seal(keys []Key, options ...SealOption) (dedupe.Codec, error) {
	s := &sealer{}
	var found []error
	s.ring, found = newRing(keys)
	for _, option := range options {
		if option == nil {
			found = append(found, errOptionNil)
			continue
		}
		option(s)
	}
	if s.untilGiven && s.unsealedUntil.IsZero() {
		found = append(found, errors.New("WithUnsealed: the time is zero; give the end of the rollout plus the retention"))
	}
	if ahead := time.Until(s.unsealedUntil); ahead > maxUnsealed {
		found = append(found, fmt.Errorf("WithUnsealed(%s) is more than 100 days ahead; give the end of the rollout plus the retention",
			s.unsealedUntil.Format(time.RFC3339)))
	}
	if len(found) > 0 {
		return nil, invalid("Seal", found)
	}
	return s, nil
}

// Encode seals the answer. It never fails.
func (s *sealer) Encode(digest dedupe.Digest, fence uint64, answer []byte) ([]byte, error) {
	if s.idle && !marked(answer, sealMark) {
		return present(answer), nil
	}
	id, aead := s.ring.first, s.ring.keys[s.ring.first]
	head := len(sealMark) + 2 + len(id) + fenceSize
	stored := make([]byte, 0, head+len(answer)+aead.Overhead())
	stored = append(stored, sealMark...)
	stored = append(stored, sealVersion, byte(len(id))) //nolint:gosec // an ID has 64 bytes at most
	stored = append(stored, id...)
	stored = binary.BigEndian.AppendUint64(stored, fence)
	return aead.Seal(stored, nil, answer, associated(stored, digest)), nil //nolint:gosec // it draws its nonces itself, and takes none
}

// Decode opens what Encode returned. It trusts nothing: the bytes come from a store.
func (s *sealer) Decode(digest dedupe.Digest, stored []byte) ([]byte, error) {
	if !marked(stored, sealMark) {
		if s.idle || time.Now().Before(s.unsealedUntil) {
			return present(stored), nil
		}
		return nil, unreadable("it is not sealed, and unsealed answers are not accepted; see atrest.WithUnsealed")
	}
	id, head, err := sealedBy(stored)
	if err != nil {
		return nil, err
	}
	aead, ok := s.ring.keys[string(id)]
	if !ok {
		return nil, unreadable("it is sealed with the key %q, which is not in the ring", id)
	}
	body := stored[head:]
	if len(body) < aead.Overhead() {
		return nil, errCutShort
	}
	answer := make([]byte, 0, len(body)-aead.Overhead())
	answer, err = aead.Open(answer, nil, body, associated(stored[:head], digest))
	if err != nil {
		return nil, unreadable("it does not open with the key %q: it was changed, is another record's, or the key's secret is another one", id)
	}
	return answer, nil
}

var errCutShort = unreadable("it is cut short")

// sealedBy returns the ID of the key that sealed, and the size of what stands before the nonce.
func sealedBy(stored []byte) (id []byte, head int, err error) {
	start := len(sealMark) + 2
	if len(stored) < start {
		return nil, 0, errCutShort
	}
	if version := stored[len(sealMark)]; version != sealVersion {
		return nil, 0, unreadable("it is sealed in version %d, and this is version %d", version, sealVersion)
	}
	size := int(stored[len(sealMark)+1])
	head = start + size + fenceSize
	if len(stored) < head {
		return nil, 0, errCutShort
	}
	if size == 0 || size > maxID || !isText(stored[start:start+size]) {
		return nil, 0, unreadable("its key has no valid ID")
	}
	return stored[start : start+size], head, nil
}

// associated returns what is authenticated together with an answer.
func associated(head []byte, digest dedupe.Digest) []byte {
	data := make([]byte, 0, len(head)+len(digest))
	data = append(data, head...)
	return append(data, digest[:]...)
}
