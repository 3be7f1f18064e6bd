package adaptertest

// Names under which key functions find the parts of a [Request].
const (
	// KeyHeader is the header, or the metadata, with the idempotency key.
	KeyHeader = "Idempotency-Key"
	// CallerHeader is the one with the caller.
	CallerHeader = "X-Caller"
	// ResourceParam is the path parameter, or the field of the message, with the resource.
	ResourceParam = "id"
	// OtherField is the field of the body, or of the message, with the other resource.
	OtherField = "to"
)

// Request is a request in neutral terms.
type Request struct {
	// Operation is what is asked for.
	Operation Operation

	// Keys are the values of [KeyHeader]: one line, or one element of metadata, for each.
	Keys []string

	// Caller is the value of [CallerHeader], "" for none.
	Caller string

	// Resource is the value of [ResourceParam], never "".
	Resource string

	// Other is the value of [OtherField], left out if it is "".
	Other string

	// Text is the rest of the payload.
	Text string

	// Streamed says not to tell the payload's length beforehand, where the protocol has the choice.
	Streamed bool
}

// Operation is one of the operations of the server.
type Operation uint8

const (
	// Withdraw is an operation with effects.
	Withdraw Operation = iota
	// Deposit is another one, with the same parameters.
	Deposit
	// Look is a safe operation, such as GET. Its requests have no Other and no Text.
	Look
)
