package keyfuncs

import "github.com/interlock-go/interlock/dedupe"

// Param returns the key function for a path parameter, or under gRPC a top-level field of the
// message: the id of POST /accounts/{id}/withdraw. A request that has none, or an empty one, has no
// key (""). It is an error if the value cannot serve as a key, such as a list in a message.
//
// The text is not normalised: 7 and 07 are two keys. Where a resource has several spellings, bring
// them to one with [Map], or two requests on it run at the same time.
//
// The client chooses the value. Put the guard behind the authorization, or anyone can keep any
// resource locked; and do not take the caller of a Once from here.
//
// Param panics if name is "".
func Param(name string) dedupe.KeyFunc {
	if name == "" {
		panic(`keyfuncs: Param(""): give the name of a path parameter, such as "id"`)
	}
	return func(r dedupe.Request) (string, error) { return r.Param(name) }
}
