package keyfuncs

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/interlock-go/interlock/dedupe"
)

// Hash returns the key function for the SHA-256 of fn's key, in hexadecimal: 64 characters, however
// long the key. No key stays no key (""), and an error of fn is returned as it is.
//
// Guards hash all keys by themselves. Hash is for keys that the service also uses or shows
// elsewhere and that are too long for it. It hides a key only as far as the key cannot be guessed: a
// phone number is found by trying them all.
//
// Hash panics if fn is nil.
func Hash(fn dedupe.KeyFunc) dedupe.KeyFunc {
	if fn == nil {
		panic("keyfuncs: Hash(nil): give a key function")
	}
	return Map(fn, func(key string) (string, error) {
		sum := sha256.Sum256([]byte(key))
		return hex.EncodeToString(sum[:]), nil
	})
}
