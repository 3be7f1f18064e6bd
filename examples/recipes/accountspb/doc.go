// Package accountspb is what protoc makes of accounts.proto and gateway.yaml: the service of the
// recipes, for gRPC, grpc-gateway and Connect.
//
// After a change of either, with protoc installed (Debian: protobuf-compiler), in examples/recipes:
//
//	go generate ./accountspb
package accountspb

//go:generate ./generate.sh
