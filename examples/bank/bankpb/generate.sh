#!/bin/sh
# Makes bank.pb.go and bank_grpc.pb.go out of bank.proto. Needs Go, and protoc (Debian:
# protobuf-compiler); its plugins are of the versions below, whatever else is installed.
set -eu
cd "$(dirname "$0")/../../.." # what protoc registers is the path from here: bank.proto alone is not unique

plugins=$(mktemp -d)
trap 'rm -rf "$plugins"' EXIT
GOBIN=$plugins go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN=$plugins go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2

protoc \
  --plugin="$plugins/protoc-gen-go" --go_out=. --go_opt=paths=source_relative \
  --plugin="$plugins/protoc-gen-go-grpc" --go-grpc_out=. --go-grpc_opt=paths=source_relative \
  examples/bank/bankpb/bank.proto
