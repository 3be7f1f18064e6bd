package gateway

import (
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
)

// Options returns the options of a gateway to a server with grpcmw's guards.
func Options() []runtime.ServeMuxOption {
	return []runtime.ServeMuxOption{
		runtime.WithIncomingHeaderMatcher(incoming),
		runtime.WithOutgoingHeaderMatcher(outgoing),
		runtime.WithErrorHandler(writeError),
	}
}

// incoming passes the key on under its own name, where keyfuncs.Header("Idempotency-Key") finds it.
// By default, the gateway drops it.
func incoming(header string) (string, bool) {
	if header == "Idempotency-Key" {
		return "idempotency-key", true
	}
	return runtime.DefaultHeaderMatcher(header)
}

// outgoing gives the mark of a replay the name that it has under net/http, and everything else the
// gateway's prefix.
func outgoing(metadata string) (string, bool) {
	if metadata == "idempotent-replayed" {
		return "Idempotent-Replayed", true
	}
	return runtime.MetadataHeaderPrefix + metadata, true
}
