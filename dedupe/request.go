package dedupe

import "context"

// Request is what key functions see of a request, whichever framework it came through. Adapters
// implement it; a key function written against it works under net/http, Echo and gRPC alike.
//
// A Request belongs to the goroutine that serves the request and must not be kept after it.
type Request interface {
	// Context is the request's context.
	Context() context.Context

	// Operation names what is asked for, without its arguments: method and route pattern
	// ("POST /accounts/{id}/withdraw"), or the full gRPC method name.
	Operation() string

	// Safe reports that the operation is read-only by definition (GET, HEAD, OPTIONS, TRACE), so
	// that guards let it pass unless built with [WithSafeMethods].
	Safe() bool

	// Header returns the values of a header or metadata key, one element for each line, in the
	// order received. Names are matched without regard to case.
	Header(name string) []string

	// Param returns a path parameter, or a top-level field of a gRPC message, as text; "" when
	// there is none. An error means that the value is there but cannot serve as a key.
	Param(name string) (string, error)

	// Field returns the field of the JSON body or of the message that a dotted path names, as
	// text: strings as they are, integers in decimal. It returns "" when there is none. An error
	// means that the value is there but cannot serve as a key (a list, a fraction, an ambiguous
	// name), or that the body cannot be read.
	Field(path string) (string, error)

	// Payload returns what makes two requests the same request. An adapter that has to read the
	// body for it gives the handler the same bytes again. It fails with [ErrPayloadTooLarge] when
	// the body is over the adapter's limit.
	Payload() (Payload, error)

	// Value returns a value of the request's context. Under Echo a string key also finds what
	// c.Set stored.
	Value(key any) any
}

// Payload is the part of a request that a repeat must bring unchanged.
type Payload struct {
	// Target is what is addressed, with its arguments: method, path and query, or the full gRPC
	// method name.
	Target string

	// ContentType says how Body is to be read.
	ContentType string

	// Body is the body's bytes, or the deterministically marshalled message. It must not be
	// modified.
	Body []byte
}

// KeyFunc takes a key out of a request. It returns "" and no error when the request has no key,
// and an error when it has one that cannot be used. If that error is a [KeyError], its source and
// problem are told to the client; the text of any other error never is.
//
// A KeyFunc is called by many goroutines at once.
type KeyFunc func(Request) (string, error)
