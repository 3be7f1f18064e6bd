package atrest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
)

// Key is one key of a ring: see [Seal].
type Key struct {
	// ID names the key. It stands before every answer that the key seals, for everybody to read: a
	// date or a number, nothing secret. From 1 to 64 printable ASCII bytes without spaces. An ID
	// stays with its secret for good.
	ID string

	// Secret is 32 random bytes, as crypto/rand makes them or a key management service hands them
	// out. Bytes that are all the same, or text (a pass phrase, hexadecimal or base64 that was not
	// decoded), are refused. Seal keeps no reference to it, so that it may be cleared afterwards.
	Secret []byte `json:"-"`
}

// Format prints the key's ID, whatever the verb: a key that gets into a log leaves its secret out.
func (k Key) Format(state fmt.State, _ rune) { _, _ = fmt.Fprintf(state, "atrest.Key(%q)", k.ID) }

const (
	secretSize = 32 // AES-256
	maxID      = 64
)

// ring holds the keys by their IDs. The first one seals.
type ring struct {
	first string
	keys  map[string]cipher.AEAD
}

// newRing returns an error for each key that is none, by its place and ID, never by its secret.
func newRing(keys []Key) (ring, []error) {
	r := ring{keys: make(map[string]cipher.AEAD, len(keys))}
	if len(keys) == 0 {
		return r, []error{errors.New("there is no key; give one at least, the first of which seals")}
	}
	r.first = keys[0].ID
	var found []error
	for i, key := range keys {
		if err := key.problem(keys[:i]); err != nil {
			found = append(found, fmt.Errorf("key %d (%q): %w", i+1, key.ID, err))
			continue
		}
		aead, err := newAEAD(key.Secret)
		if err != nil {
			found = append(found, fmt.Errorf("key %d (%q): %w", i+1, key.ID, err))
			continue
		}
		r.keys[key.ID] = aead
	}
	return r, found
}

// newAEAD returns AES-256-GCM that draws a random nonce for each message, in the way that is allowed
// in FIPS 140-only mode too.
func newAEAD(secret []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// problem returns what is wrong with a key that comes after earlier ones in its ring.
func (k Key) problem(earlier []Key) error {
	switch {
	case len(k.ID) == 0 || len(k.ID) > maxID:
		return fmt.Errorf("the ID has %d bytes; give it 1 to %d", len(k.ID), maxID)
	case !isText([]byte(k.ID)):
		return errors.New("the ID has spaces, or bytes that are not printable ASCII; leave them out")
	case len(k.Secret) != secretSize:
		return fmt.Errorf("the secret has %d bytes; give %d random ones, decoded from hexadecimal or base64",
			len(k.Secret), secretSize)
	case bytes.Count(k.Secret, k.Secret[:1]) == secretSize:
		return fmt.Errorf("the secret is one byte %d times over; give %d random bytes", secretSize, secretSize)
	case isText(k.Secret):
		return fmt.Errorf("the secret is text; give %d random bytes, decoded from hexadecimal or base64", secretSize)
	}
	for i, other := range earlier {
		if k.ID == other.ID {
			return fmt.Errorf("the ID is that of key %d too; give each key its own", i+1)
		}
		if bytes.Equal(k.Secret, other.Secret) {
			return fmt.Errorf("the secret is that of key %d (%q) too; a rotation needs a new one", i+1, other.ID)
		}
	}
	return nil
}

// isText reports whether text is printable ASCII without spaces. Of 32 random bytes, one in 10¹⁴ is.
func isText(text []byte) bool {
	for _, b := range text {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return true
}
