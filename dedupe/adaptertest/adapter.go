package adaptertest

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
)

// Adapter is what the scenarios have to know about a framework and its adapter. The statuses are to
// be written out, not computed by the adapter's own code: they are what it is held against.
type Adapter struct {
	// Serve starts a server on loopback with the handler behind the guards, and returns a client of
	// it. Both end with the test.
	Serve func(t testing.TB, m Mount) Client

	// Caller is a key function for a value that something in front of the guards has put where the
	// framework keeps such values: the [Request.Caller] of each request that has one.
	Caller dedupe.KeyFunc

	// Refusals has the status of each outcome that is a refusal.
	Refusals map[dedupe.Outcome]string

	// Failures are the errors that a handler has in the framework's own forms: at least one of each
	// form, and both some that are kept and some that are not.
	Failures []Failure

	// Survives reports that the server outlives a panic that nobody recovers from.
	Survives bool
}

// Failure is an error of the handler in one of the forms that the framework has for errors.
type Failure struct {
	// Name is what a handler calls it by: [Answer.Failure].
	Name string

	// Status is what the client is told: [Reply.Status].
	Status string

	// Kept reports that it is a verdict on the request: a repeat gets it again.
	Kept bool
}

// Client sends requests to a server.
type Client interface {
	// Send sends a request and returns the whole reply, or an error if there is none: the
	// connection broke, or ctx ended first. It never sends a request twice, and is called by many
	// goroutines at once.
	Send(ctx context.Context, r Request) (Reply, error)
}

// Mount is how a server is to be set up. From the outside to the inside: what recovers from panics if
// it is Outside, what finds out who the caller is, what sets a deadline, the guards of the group, those
// of the route, what recovers if it is Inside, the handler.
type Mount struct {
	// Group and Route are the guards of two middlewares, one inside the other, each outermost first.
	// All operations are behind both. Without guards there is no middleware.
	Group, Route []*dedupe.Guard

	// Recover is where the framework's own middleware recovers from panics.
	Recover Place

	// Deadline returns the context of a request, perhaps with a deadline: a middleware of the framework
	// puts it into the request, and cancels it when the request is done. It may be nil.
	Deadline func(context.Context) (context.Context, context.CancelFunc)

	// Handler answers all operations.
	Handler Handler

	// MaxPayload and MaxAnswer are the adapter's limits in bytes, 0 for the defaults.
	MaxPayload, MaxAnswer int
}

// Place is where a middleware is.
type Place uint8

const (
	// Nowhere: there is no such middleware.
	Nowhere Place = iota
	// Outside: around all guards.
	Outside
	// Inside: around the handler alone.
	Inside
)

// Handler is the handler of a scenario. It is called with the handler's context and with the payload
// as the handler has read it ([Request.Text]), after all of it has been read. It may panic and call
// runtime.Goexit. What it returns is to be carried out as a handler of the framework does it.
type Handler func(ctx context.Context, text string) Answer

// Answer is what a handler does in the end.
type Answer struct {
	// Text is the body of an answer that is no error.
	Text string

	// Failure is the name of the [Failure] to end with instead, if it is not "".
	Failure string

	// Err is an error to end with instead, if it is not nil: returned as it is where handlers return
	// errors, and told as an internal error where they do not.
	Err error

	// Kept is sent in a header (or metadata) that is kept with an answer, Unkept in one that is not.
	// Neither is sent if it is "".
	Kept, Unkept string
}
