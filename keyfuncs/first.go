package keyfuncs

import "github.com/interlock-go/interlock/dedupe"

// First returns the key function that asks fns in order and takes the first key there is. If none
// has one, there is none (""). An error ends the search and is returned: a client that sent an
// unusable key is told so, and not given another key in silence.
//
// The key does not tell which function it came from. Where they are not trusted alike, this lets a
// client that chooses one of them take the name of another: mark each with its origin.
//
//	keyfuncs.First(
//		keyfuncs.Join(keyfuncs.Const("user"), keyfuncs.Value("user")),
//		keyfuncs.Join(keyfuncs.Const("guest"), keyfuncs.Header("X-Device")),
//	)
//
// First panics if there are no functions or one is nil.
func First(fns ...dedupe.KeyFunc) dedupe.KeyFunc {
	fns = checked("First", fns)
	return func(r dedupe.Request) (string, error) {
		for _, fn := range fns {
			key, err := fn(r)
			if err != nil {
				return "", err
			}
			if key != "" {
				return key, nil
			}
		}
		return "", nil
	}
}
