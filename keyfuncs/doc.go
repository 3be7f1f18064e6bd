// Package keyfuncs has the key functions of Interlock's guards: each takes a key, or the name of a
// caller, out of a request. They see the neutral [dedupe.Request], so that a key function written
// once works under net/http, Echo and gRPC.
//
//	caller := keyfuncs.Value("user")                // who asks: set by the authentication before
//	key := keyfuncs.Header("Idempotency-Key")       // which attempt this is: chosen by the client
//	account := keyfuncs.Param("id")                 // which resource: part of the path
//
// Every one keeps to the contract of [dedupe.KeyFunc]: "" and no error means that the request has
// no key, an error means that it has one that cannot be used. A guard refuses both, unless it was
// built to let requests without a key pass; an unusable key is refused even then. Errors that are
// a [dedupe.KeyError] may be shown to clients, and none made here contains the key.
//
// Operation, PayloadHash and Anyone are key functions themselves and are passed without
// parentheses; the others are called and return one. Those panic when called with arguments that
// can never be right, such as an empty name or a nil function: a service is meant to build its key
// functions once, as it starts, and to fail there rather than at its first request. What they return
// is safe for concurrent use.
//
// The package also has fingerprints ([Fingerprint]): what a repeat must bring unchanged.
package keyfuncs
