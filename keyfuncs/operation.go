package keyfuncs

import "github.com/interlock-go/interlock/dedupe"

// Operation is the key function for what is asked for without its arguments: method and route
// pattern, or the full gRPC method name. Alone it lets one request at a time run on a route; with
// [Join] it keeps the keys of several routes apart. A Once does so by itself.
//
// It returns no error, and "" only if the adapter knows no operation.
func Operation(r dedupe.Request) (string, error) { return r.Operation(), nil }
