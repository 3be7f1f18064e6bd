package keyfuncs

import (
	"context"

	"github.com/interlock-go/interlock/dedupe"
)

// Context returns the key function that asks f, for what packages keep behind functions of their
// own: a tenant, the claims of a token. What f returns is the key, under the contract of
// [dedupe.KeyFunc]: "" for none, an error for an unusable one, a [dedupe.KeyError] if the client
// may be told why. f is called by many goroutines at once.
//
// Context panics if f is nil.
func Context(f func(context.Context) (string, error)) dedupe.KeyFunc {
	if f == nil {
		panic("keyfuncs: Context(nil): give a function that takes the key from a context")
	}
	return func(r dedupe.Request) (string, error) { return f(r.Context()) }
}
