package keyfuncs

import "github.com/interlock-go/interlock/dedupe"

// Const returns the key function that gives every request the same key: a resource of which there
// is only one, or with [Join] a name that keeps other keys apart. It returns neither "" nor an error.
//
// As the caller of a Once it shares answers among all callers; [Anyone] says so.
//
// Const panics if key is "", which would mean that no request has a key.
func Const(key string) dedupe.KeyFunc {
	if key == "" {
		panic(`keyfuncs: Const(""): give the key that all requests have`)
	}
	return func(dedupe.Request) (string, error) { return key, nil }
}
