package dedupe

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
)

// Digest names one guarded key in a [Store]: the SHA-256 of length-prefixed kind, name or
// operation, caller and key. Raw keys never reach a store, a log or an error.
type Digest [sha256.Size]byte

// String returns the digest in unpadded URL-safe base64, 43 characters.
func (d Digest) String() string { return base64.RawURLEncoding.EncodeToString(d[:]) }

// Fingerprint is the SHA-256 of what a repeat must bring unchanged. The zero Fingerprint matches
// every other: Serialize and jobs have none.
type Fingerprint [sha256.Size]byte

// Token is the secret of one claim. Whoever brings it is its owner.
type Token [16]byte

// String returns the token in hexadecimal.
func (t Token) String() string { return hex.EncodeToString(t[:]) }

func newToken() (t Token) {
	_, _ = rand.Read(t[:]) // documented never to fail
	return t
}

// digest hashes parts so that no two different lists of parts give the same bytes to hash: each
// part is preceded by its length.
func digest(parts ...string) Digest {
	var space [512]byte
	text := space[:0]
	for _, part := range parts {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return sha256.Sum256(text)
}

// fingerprintOf hashes a payload. The body is last and may be large, so that it is not copied.
func fingerprintOf(p Payload) (f Fingerprint) {
	hash := sha256.New()
	var space [256]byte
	head := space[:0]
	for _, part := range [...]string{p.Target, p.ContentType} {
		head = binary.AppendUvarint(head, uint64(len(part)))
		head = append(head, part...)
	}
	hash.Write(head)
	hash.Write(p.Body)
	hash.Sum(f[:0])
	return f
}
