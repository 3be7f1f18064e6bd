package grpcmw

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Config is how requests and answers are translated between gRPC and the guards. The zero value has
// every default. What is decided, and when, is the guards' business.
type Config struct {
	// MaxPayload is the largest message that is compared with a repeat, in bytes as marshalled; a
	// larger one is refused with RESOURCE_EXHAUSTED. Messages that no guard compares are not
	// marshalled. At most 1 GiB; the default is 1 MiB.
	MaxPayload int

	// MaxAnswer is the largest answer that is kept, in bytes of the marshalled response or status.
	// Of a larger one, repeats are told that the request ran but its answer is not there. Answers
	// are in the store for the retention. At most 1 GiB; the default is 1 MiB.
	MaxAnswer int

	// Keep decides which answers are kept; what is not kept runs again. The default is
	// [DefaultKeep].
	Keep func(codes.Code) bool

	// KeepMetadata names header and trailer metadata that is kept and replayed with the answer, if
	// the handler set it. Cookies, credentials, and what belongs to gRPC itself are refused: they
	// belong to one request. The default is none. With any, grpc.SetSendCompressor and
	// grpc.ClientSupportedCompressors do not work inside a Once: they insist on gRPC's own stream.
	KeepMetadata []string

	// Types finds the Go types of replayed responses by name. The default is
	// protoregistry.GlobalTypes, where all generated types are; types that handlers returned
	// before are found without it.
	Types protoregistry.MessageTypeResolver

	// Pushback adds the trailer grpc-retry-pushback-ms to refusals, which gRPC's own retries heed: it
	// has them wait until the request may succeed, and give up when it cannot. The default is not
	// to.
	Pushback bool

	// Domain is the domain of the ErrorInfo in refusals. The default is
	// "github.com/interlock-go/interlock".
	Domain string
}

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// withDefaults returns c with every default filled in, and an error for each bad field.
func (c Config) withDefaults() (Config, []error) {
	var found []error
	if c.MaxPayload < 0 || c.MaxPayload > gibibyte {
		found = append(found, fmt.Errorf("grpcmw.Config: MaxPayload is %d; it must be from 1 to 1 GiB, and 0 is the default of 1 MiB", c.MaxPayload))
	}
	if c.MaxAnswer < 0 || c.MaxAnswer > gibibyte {
		found = append(found, fmt.Errorf("grpcmw.Config: MaxAnswer is %d; it must be from 1 to 1 GiB, and 0 is the default of 1 MiB", c.MaxAnswer))
	}
	kept := make([]string, len(c.KeepMetadata))
	for i, name := range c.KeepMetadata {
		kept[i] = strings.ToLower(name)
		if reason := neverKept(kept[i]); reason != "" {
			found = append(found, fmt.Errorf("grpcmw.Config: KeepMetadata has %q, which %s; leave it out", name, reason))
		}
	}
	slices.Sort(kept)
	c.KeepMetadata = slices.Compact(kept)
	if c.MaxPayload == 0 {
		c.MaxPayload = mebibyte
	}
	if c.MaxAnswer == 0 {
		c.MaxAnswer = mebibyte
	}
	if c.Keep == nil {
		c.Keep = DefaultKeep
	}
	if c.Types == nil {
		c.Types = protoregistry.GlobalTypes
	}
	if c.Domain == "" {
		c.Domain = "github.com/interlock-go/interlock"
	}
	return c, found
}

// DefaultKeep keeps OK and the errors that are verdicts on the request: INVALID_ARGUMENT, NOT_FOUND,
// ALREADY_EXISTS, FAILED_PRECONDITION and OUT_OF_RANGE. The others may come out otherwise next time.
func DefaultKeep(code codes.Code) bool {
	switch code {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange:
		return true
	default:
		return false
	}
}

// neverKept returns why metadata of this name, in lower case, must not be replayed, or "".
func neverKept(name string) string {
	switch {
	case name == "" || strings.ContainsFunc(name, notInName):
		return "is not a name of metadata"
	case strings.HasPrefix(name, "grpc-"):
		return "is gRPC's own"
	}
	switch name {
	case "cookie", "set-cookie", "set-cookie2", "authorization", "proxy-authorization", "authentication-info",
		"proxy-authentication-info", "www-authenticate", "proxy-authenticate":
		return "carries credentials"
	case "content-type", "content-length", "te", "user-agent", "host", "connection", "keep-alive",
		"proxy-connection", "trailer", "transfer-encoding", "upgrade":
		return "belongs to the transport"
	case "date", "age":
		return "is made anew for each answer"
	case replayedHeader:
		return "tells a replay from the first answer"
	default:
		return ""
	}
}

// notInName goes by gRPC's protocol: names are of lower case letters, digits and -_. alone.
func notInName(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.", c)
}

// build returns what the interceptors of c for methods share. The error names each bad field, method
// and guard; check adds what it finds about one method.
func (c Config) build(methods Methods, check checkFunc) (*interceptor, error) {
	c, found := c.withDefaults()
	found = append(found, methods.problems(check)...)
	if len(found) > 0 {
		return nil, errors.Join(found...)
	}
	return &interceptor{config: c, guarded: methods.index()}, nil
}

// interceptor is what the interceptors of one configuration share.
type interceptor struct {
	config  Config
	guarded guarded
	methods methodCache
	types   typeCache
}
