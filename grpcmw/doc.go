// Package grpcmw puts guards in front of gRPC methods.
//
//	grpc.NewServer(grpc.UnaryInterceptor(grpcmw.UnaryServerInterceptor(grpcmw.Methods{
//		bankpb.Bank_Withdraw_FullMethodName: {once, account},
//	})))
//
// It takes keys out of metadata and messages, turns refusals into statuses, and records the answers
// that a [dedupe.Once] keeps. It decides nothing: that is package dedupe's. [Config] has what can be
// changed.
//
// # Where it belongs in a chain
//
// Inside what finds out who the caller is, and outside what turns a handler's errors into statuses:
// an error that has no status yet is UNKNOWN, and is not kept. Recovering from panics works on
// either side; on the inside, the INTERNAL that it makes of a panic is not kept.
//
// # Keys
//
// keyfuncs.Header reads metadata, and keyfuncs.Param and keyfuncs.Field read the message by
// protobuf reflection: Param a field of the message itself, Field a path of fields such as
// "transfer.to.id". Fields may be named as in the .proto file or as in JSON. Strings are taken as
// they are, integers and enums in decimal (the name of an enum's value can change and may be unknown
// to another replica, its number is what was sent), bytes in base64 as in JSON, and the wrappers of
// google.protobuf as what they wrap. Whatever else is there is an unusable key: lists, maps,
// fractions, booleans and other messages.
//
// There is no key if the message does not have the field, or the field is not set, or is an empty
// string. An integer or enum of 0 in a field without presence could be a key or none, and is refused
// as unusable; declare the field optional if 0 is meant, or if it may be left out.
//
// # Safe methods
//
// Methods with the option idempotency_level = NO_SIDE_EFFECTS are to gRPC what GET is to HTTP.
// Guards let them pass unless they were built with [dedupe.WithSafeMethods].
//
// # Answers
//
// Under a Once, the response or the error that the handler returned is kept, and the client gets it
// when it is saved. Errors are kept with code, message and all details. A response is kept if it is
// a protobuf message; of any other, and of one that cannot be marshalled or is too large, repeats are
// told that the request ran. A replay carries the header metadata "idempotent-replayed: true".
//
// Replayed responses are decoded into the type that the method returns. A response that was kept as
// another type, by a version of the service that declared the method otherwise, is not replayed; the
// handler does not run again.
//
// # Streams
//
// [StreamServerInterceptor] holds the key of a [dedupe.Serialize] while the stream lives, at most for
// its [dedupe.WithMaxHold]. The stream's context carries the lease and is cancelled when that is
// lost; RecvMsg fails from then on. Guards come before the first message, so that keys can only be
// taken from metadata, from the name of the method and from the context. A Once is refused when the
// interceptor is built: there is no single answer to be kept.
package grpcmw
