package keyfuncs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
)

// Field returns the key function for a field of the JSON body, or under gRPC of the message, that a
// dotted path names: "to", "order.customer.id". Strings are taken as they are, integers in decimal.
// A request that lacks the field, or has it empty, has no key (""). It is an error if the value
// cannot serve as a key (a list, an object, a fraction) or the body cannot be read; a body over
// the adapter's limit gives [dedupe.ErrPayloadTooLarge].
//
// As with [Param], the text is not normalised and the client chooses it.
//
// Field panics if path is "" or has an empty element ("a..b").
func Field(path string) dedupe.KeyFunc {
	if slices.Contains(strings.Split(path, "."), "") {
		panic(fmt.Sprintf("keyfuncs: Field(%q): has an empty element; give a dotted path such as %q", path, "order.id"))
	}
	return func(r dedupe.Request) (string, error) { return r.Field(path) }
}
