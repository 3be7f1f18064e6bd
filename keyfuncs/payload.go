package keyfuncs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/interlock-go/interlock/dedupe"
)

// PayloadHash is the key function for clients that send no key: two requests with the same method,
// path, query, content type and body have the same key, the SHA-256 of all of them in hexadecimal.
// Every request has one, so that it never returns "". It returns the error of
// [dedupe.Request.Payload], which is [dedupe.ErrPayloadTooLarge] for a body over the adapter's limit.
//
// It cannot tell a repeat from a second, equal wish: who buys the same thing twice within the
// retention gets the first answer twice. Prefer a key of the client, and keep the retention short
// where there is none. Bodies are compared byte by byte: JSON with its fields in another order is
// another request, and a multipart form, whose boundary is random, never repeats.
func PayloadHash(r dedupe.Request) (string, error) {
	payload, err := r.Payload()
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	var space [256]byte
	head := appendPart(space[:0], payload.Target)
	head = appendPart(head, payload.ContentType)
	head = binary.BigEndian.AppendUint64(head, uint64(len(payload.Body)))
	hash.Write(head)
	hash.Write(payload.Body) // apart from the head, so that a large body is not copied
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func appendPart(head []byte, part string) []byte {
	head = binary.BigEndian.AppendUint64(head, uint64(len(part)))
	return append(head, part...)
}
