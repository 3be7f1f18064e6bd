// Package canonical has the fingerprint of a JSON body by what it says instead of how it is written.
// Clients that serialize a request anew for each attempt may put its members in another order, and the
// default, which compares bytes, then refuses the repeat as a mismatch.
//
//	once, err := dedupe.Once(store, caller, key, dedupe.WithFingerprint(canonical.JSON))
//
// It is a module of its own, so that nobody else depends on the JSON library it takes:
// github.com/go-json-experiment/json, which mirrors the standard library's encoding/json/jsontext.
package canonical
