package keyfuncs

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/dedupe"
)

// Fingerprint takes out of a request what a repeat must bring unchanged. It is what
// [dedupe.WithFingerprint] takes, instead of the default, which is the whole payload: content type and
// body, byte by byte. The request's target (method, path and query, or the gRPC method) counts whatever
// the fingerprint is. [Fields], [OptionalFields], [Headers] and [OptionalHeaders] return one; [Body],
// [ContentType] and [Multipart] are fingerprints themselves; [All] combines them. Canonical JSON is
// in package keyfuncs/canonical, a module of its own.
//
// What a fingerprint leaves out may differ in a repeat, and the repeat is then given the first answer
// nevertheless. Leave out only what does not change what the handler does.
//
// An error refuses the request before it runs: as a payload that is too large if it matches
// [dedupe.ErrPayloadTooLarge], otherwise as an unusable key, of which the client is told what a
// [dedupe.KeyError] says.
//
// All replicas must take the same fingerprint. Once it is changed, repeats of requests that came before
// are refused as a mismatch, for as long as these are retained.
//
// Those of this package are SHA-256 digests, 32 bytes however long what they cover. They are safe for
// concurrent use.
type Fingerprint func(dedupe.Request) ([]byte, error)

// All returns the fingerprint that covers what fns cover. It asks them in order; the first that fails
// decides, and its error is returned as it is. Put first what is cheap, last what reads the body.
//
//	keyfuncs.All(keyfuncs.OptionalHeaders("Api-Version"), keyfuncs.ContentType, keyfuncs.Body)
//
// All panics if there are no functions or one is nil.
func All(fns ...Fingerprint) Fingerprint {
	if len(fns) == 0 {
		panic("keyfuncs: All(): give at least one fingerprint")
	}
	for i, fn := range fns {
		if fn == nil {
			panic(fmt.Sprintf("keyfuncs: All: fingerprint %d of %d is nil", i+1, len(fns)))
		}
	}
	fns = slices.Clone(fns)
	return func(r dedupe.Request) ([]byte, error) {
		var space [256]byte
		covered := space[:0]
		for _, fn := range fns {
			part, err := fn(r)
			if err != nil {
				return nil, err
			}
			covered = appendPart(covered, string(part))
		}
		return sum(covered), nil
	}
}

// Body is the fingerprint of the body's bytes, without the content type: for clients whose retries
// name it differently, with a charset and without. Under gRPC it covers the message. It fails only
// as [dedupe.Request.Payload] does.
func Body(r dedupe.Request) ([]byte, error) {
	payload, err := r.Payload()
	if err != nil {
		return nil, err
	}
	return sum(payload.Body), nil
}

// ContentType is the fingerprint of the content type as the request says it, parameters included, to
// bind it to a fingerprint that leaves it out. Under gRPC it covers the name of the message's type.
// It fails only as [dedupe.Request.Payload] does.
func ContentType(r dedupe.Request) ([]byte, error) {
	payload, err := r.Payload()
	if err != nil {
		return nil, err
	}
	return sum([]byte(payload.ContentType)), nil
}

func sum(covered []byte) []byte {
	digest := sha256.Sum256(covered)
	return digest[:]
}
