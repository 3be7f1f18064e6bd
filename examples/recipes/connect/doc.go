// Package connect is a recipe: guards in Connect handlers.
//
// [Interceptor] takes calls through grpcmw, which needs no gRPC server: it sees messages and errors,
// and these are the same in all three protocols that a Connect handler speaks. So a call that was
// made in one is replayed in another, and what is said of keys, kept answers and refusals in package
// grpcmw holds: keyfuncs.Header reads headers, keyfuncs.Param and keyfuncs.Field the message.
//
//	guards, err := connect.Interceptor(grpcmw.Methods{
//		accountspbconnect.AccountsWithdrawProcedure: {once, account},
//	})
//	mux.Handle(accountspbconnect.NewAccountsHandler(accounts, connectrpc.WithInterceptors(auth, guards)))
//
// Put it inside the interceptors that find out who the caller is, and outside those that turn a
// handler's errors into others: an error that is not a *connect.Error is UNKNOWN, and is not kept.
//
// A refusal has the code and the details of gRPC's, and its time to wait in Retry-After too. Under
// the Connect protocol its status is the one that belongs to the code: 409 for a conflict, but 400
// for a key that was used with another payload. A replay has the header Idempotent-Replayed. Other
// headers and trailers that the handler set are not replayed.
//
// Name the methods one by one if the service has streams: a Serialize holds its key while a stream
// lives, and finds it in headers only. A Once for a stream, and for all of a service, is an error.
//
// # Why not httpmw around the handler
//
// A Connect handler is an http.Handler, but what httpmw sees of it is an answer only in the Connect
// protocol. gRPC and gRPC-Web answer 200 whatever came out, with the error in trailers, and flush:
// nothing of that can be kept, so that every repeat is refused, also that of a call that failed. And
// problems are no errors of Connect's: to its clients, a conflict would be UNKNOWN, and not to be
// tried again.
package connect
