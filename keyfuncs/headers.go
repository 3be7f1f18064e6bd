package keyfuncs

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
)

// Headers returns the fingerprint of some header lines, or under gRPC of metadata. Added to another
// fingerprint, it covers what the handler looks at besides the body, such as a version. By itself it
// does not read the body, so that no limit applies to that: it takes the place of a body that is large,
// or different with each attempt, where clients send a digest of their own:
//
//	dedupe.WithFingerprint(keyfuncs.Headers("X-File-Digest"))
//
// Such a digest is what the client says, and nobody has checked it: a client that sends a wrong one is
// given its own earlier answer. It has to be one of what is sent, not of how: Content-Digest of RFC
// 9530 covers a multipart body with its boundary, which is random.
//
// Lines are compared as received, in number, order and bytes; a proxy that joins two lines makes another
// request of them. Every header must be there: a request in which one is missing, or has only empty
// lines, is refused with an error that matches [dedupe.ErrKeyInvalid]. For what clients may leave out
// there is [OptionalHeaders].
//
// Headers panics if there are no names or one is not a header name.
func Headers(names ...string) Fingerprint { return headers("Headers", names, true) }

// OptionalHeaders is [Headers] for what requests may lack. A header that is missing is one thing, one
// that is empty another. On its own, it takes all requests that have none of the headers for the same.
//
// OptionalHeaders panics if there are no names or one is not a header name.
func OptionalHeaders(names ...string) Fingerprint { return headers("OptionalHeaders", names, false) }

func headers(constructor string, names []string, required bool) Fingerprint {
	if len(names) == 0 {
		panic("keyfuncs: " + constructor + "(): give at least one header name")
	}
	for _, name := range names {
		if !isToken(name) {
			panic(fmt.Sprintf("keyfuncs: %s(%q): not a header name; give one such as %q", constructor, name, "Api-Version"))
		}
	}
	names = slices.Clone(names)
	return func(r dedupe.Request) ([]byte, error) {
		var space [256]byte
		covered := space[:0]
		for _, name := range names {
			lines := r.Header(name)
			if required && !slices.ContainsFunc(lines, isWritten) {
				return nil, absent("header " + name)
			}
			covered = appendParts(covered, lines)
		}
		return sum(covered), nil
	}
}

func isWritten(line string) bool { return strings.Trim(line, " \t") != "" }

func appendParts(head []byte, parts []string) []byte {
	head = binary.BigEndian.AppendUint64(head, uint64(len(parts)))
	for _, part := range parts {
		head = appendPart(head, part)
	}
	return head
}
