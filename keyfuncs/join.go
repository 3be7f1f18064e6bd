package keyfuncs

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/interlock-go/interlock/dedupe"
)

// Join returns the key function for a key of several parts: a tenant and its order. Different lists
// of parts never give the same key, whatever is in them, since each part is preceded by its length:
// "ab", "c" give "2:ab1:c", and "a", "bc" give "1:a2:bc".
//
// The functions are asked in order, and the first that has no key or fails decides: without one part
// there is no key (""), since the other parts alone would be shared by all requests that lack it. The
// error of a part is returned as it is. Put first what is cheap to ask, last what reads the body.
//
// Join panics if there are no functions or one is nil.
func Join(fns ...dedupe.KeyFunc) dedupe.KeyFunc {
	fns = checked("Join", fns)
	return func(r dedupe.Request) (string, error) {
		var space [256]byte
		joined := space[:0]
		for _, fn := range fns {
			part, err := fn(r)
			if err != nil || part == "" {
				return "", err
			}
			joined = strconv.AppendInt(joined, int64(len(part)), 10)
			joined = append(joined, ':')
			joined = append(joined, part...)
		}
		return string(joined), nil
	}
}

// checked returns a copy of fns, so that the caller's slice may change, or panics in the name of the
// combinator that got them.
func checked(combinator string, fns []dedupe.KeyFunc) []dedupe.KeyFunc {
	if len(fns) == 0 {
		panic(fmt.Sprintf("keyfuncs: %s(): give at least one key function", combinator))
	}
	for i, fn := range fns {
		if fn == nil {
			panic(fmt.Sprintf("keyfuncs: %s: key function %d of %d is nil", combinator, i+1, len(fns)))
		}
	}
	return slices.Clone(fns)
}
