// Package bankpb is what protoc makes of bank.proto: the gRPC service of the bank.
//
// After a change of bank.proto, with protoc installed (Debian: protobuf-compiler):
//
//	go generate ./examples/bank/bankpb
package bankpb

//go:generate ./generate.sh
