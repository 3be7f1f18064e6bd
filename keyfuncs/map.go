package keyfuncs

import "github.com/interlock-go/interlock/dedupe"

// Map returns the key function that passes fn's key through f: to bring the spellings of a resource
// to one, or to refuse what is none. f is not called if there is no key or fn fails. What it
// returns is the key, under the contract of [dedupe.KeyFunc]: "" for none, an error for an unusable
// one, a [dedupe.KeyError] if the client may be told why. f is called by many goroutines at once.
//
// f decides how many keys become one. If it merges those of different resources, they wait for each
// other; if it merges different callers, they are given each other's answers.
//
// Map panics if fn or f is nil.
func Map(fn dedupe.KeyFunc, f func(key string) (string, error)) dedupe.KeyFunc {
	switch {
	case fn == nil:
		panic("keyfuncs: Map: the key function is nil")
	case f == nil:
		panic("keyfuncs: Map: the function to pass keys through is nil")
	}
	return func(r dedupe.Request) (string, error) {
		key, err := fn(r)
		if err != nil || key == "" {
			return "", err
		}
		return f(key)
	}
}
