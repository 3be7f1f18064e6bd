// Package gateway is a recipe: guards behind grpc-gateway.
//
// The guards are the gRPC server's, by grpcmw, and the gateway translates. It has to be told three
// things, which are in [Options]: to pass the idempotency key on, to pass on that an answer is a
// replay, and how refusals are written. Its clients are then told what those of httpmw are.
//
// # Why not httpmw around the gateway
//
// It works, for a gRPC server that cannot be changed:
//
//	mux.Handle("POST /v1/accounts/{id}/withdraw", httpmw.New(once, account)(gateway))
//
// But the gateway does not know what the server did. When the connection between them breaks while
// the server answers, the gateway sees UNAVAILABLE, which is not kept, and the retry is carried out a
// second time. A guard at the server has kept the answer and replays it. It guards those as well who
// do not come through the gateway, and it compares messages: a repeat may be written in other JSON.
//
// # Register connections, not servers
//
// The generated RegisterAccountsHandler, RegisterAccountsHandlerClient and
// RegisterAccountsHandlerFromEndpoint call the server over gRPC. RegisterAccountsHandlerServer calls
// its methods past all interceptors, and so past all guards.
//
// # Headers
//
// Authorization needs no rule: the gateway always passes it on as the metadata "authorization". A
// matcher that returns that name passes it on twice, and keyfuncs.Bearer refuses two. Everything else
// that the gateway passes on by itself gets the prefix "grpcgateway-", under which no key function
// looks. A value that is not ASCII is dropped on its way: of an unusable key, the server sees none.
// That is refused too, but not under [dedupe.WithOptionalKey].
package gateway
