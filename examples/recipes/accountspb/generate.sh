#!/bin/sh
# Makes the Go code of accounts.proto and gateway.yaml. Needs Go, and protoc (Debian:
# protobuf-compiler); its plugins are of the versions below, whatever else is installed.
set -eu
cd "$(dirname "$0")/../../.." # what protoc registers is the path from here: accounts.proto alone is not unique
pb=examples/recipes/accountspb

plugins=$(mktemp -d)
trap 'rm -rf "$plugins"' EXIT
export GOBIN="$plugins" GOFLAGS=
go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
go install github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-grpc-gateway@v2.32.0
go install connectrpc.com/connect/cmd/protoc-gen-connect-go@v1.21.1

PATH="$plugins:$PATH" protoc \
  --go_out=. --go_opt=paths=source_relative \
  --go-grpc_out=. --go-grpc_opt=paths=source_relative \
  --grpc-gateway_out=. --grpc-gateway_opt="paths=source_relative,grpc_api_configuration=$pb/gateway.yaml" \
  --connect-go_out=. --connect-go_opt=paths=source_relative \
  "$pb/accounts.proto"
