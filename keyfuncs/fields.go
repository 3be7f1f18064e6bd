package keyfuncs

import (
	"slices"

	"github.com/interlock-go/interlock/dedupe"
)

// Fields returns the fingerprint of some fields of the JSON body, or under gRPC of the message, that
// dotted paths name as for [Field]:
//
//	dedupe.WithFingerprint(keyfuncs.Fields("amount", "currency", "to.iban"))
//
// A repeat may then differ in everything else: in a time stamp, in fields that a newer client sends, in
// the order of fields, in its content type. Values are compared as [Field] reads them, so that the
// number 7 and the string "7" are the same, and the string "07" is another.
//
// Every field must be there. One that is missing, null or "" is an error that matches
// [dedupe.ErrKeyInvalid]: without it, requests that are not the same would be taken for repeats,
// and so they would be if a path were misspelt here. For what clients may leave out there is
// [OptionalFields]. The error of [dedupe.Request.Field] is returned as it is: for a list, an object, a
// bool, a number with a fraction or an exponent, under gRPC a 0 that cannot be told from a field that
// is not set; for a name that is there twice; for a body that is not JSON. Where such values
// count, use canonical JSON.
//
// Every path is looked up by itself: the cost is a pass over the body for each.
//
// Fields panics if there are no paths, and where Field does.
func Fields(paths ...string) Fingerprint { return fields("Fields", paths, true) }

// OptionalFields is [Fields] for what requests may lack. A field that is missing, null or "" has one
// value, different from all others. Combine it with what every request has:
//
//	keyfuncs.All(keyfuncs.Fields("amount", "to.iban"), keyfuncs.OptionalFields("memo"))
//
// On its own, it takes all requests that have none of the fields for the same.
//
// OptionalFields panics if there are no paths, and where [Field] does.
func OptionalFields(paths ...string) Fingerprint { return fields("OptionalFields", paths, false) }

func fields(constructor string, paths []string, required bool) Fingerprint {
	if len(paths) == 0 {
		panic("keyfuncs: " + constructor + "(): give at least one path")
	}
	paths = slices.Clone(paths)
	values := make([]dedupe.KeyFunc, len(paths))
	for i, path := range paths {
		values[i] = Field(path)
	}
	return func(r dedupe.Request) ([]byte, error) {
		var space [256]byte
		covered := space[:0]
		for i, valueOf := range values {
			value, err := valueOf(r)
			if err == nil && value == "" && required {
				err = absent("field " + paths[i])
			}
			if err != nil {
				return nil, err
			}
			covered = appendPart(covered, value)
		}
		return sum(covered), nil
	}
}

func absent(source string) error {
	return &dedupe.KeyError{Source: source, Problem: "is missing or empty, and has to tell a repeat from another request"}
}
