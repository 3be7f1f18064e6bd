package grpcmw

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/dedupe"
)

// ClientConfig is how a client's interceptor makes keys and tries again. The zero value has every
// default.
type ClientConfig struct {
	// Header is the metadata that carries the key. The default is idempotency-key.
	Header string

	// NewKey makes the key of a call whose context has none (see [dedupe.ContextWithKey]). It is
	// called by many goroutines at once. With "" the call fails. The default makes a UUID of version
	// 7: 122 bits of time and chance.
	NewKey func() string

	// Methods are the methods whose calls get a key, named as in [Methods]: "/bank.v1.Bank/Withdraw",
	// or "/bank.v1.Bank/*". The default is every method but those with the option
	// idempotency_level = NO_SIDE_EFFECTS.
	Methods []string

	// MaxAttempts is how often a call is sent at most. 1 is never to try again; at most 1000; the
	// default is 10. With refusals that ask for a second, as they do unless the service knows better,
	// that is 9 to 20 s.
	MaxAttempts int

	// MaxWait is the longest wait between two attempts. A refusal that asks for more is returned at
	// once. From 1 s to 24 h; the default is 1 min.
	MaxWait time.Duration

	// Domain is the domain of the ErrorInfo by which refusals are known, as in [Config]. The default
	// is "github.com/interlock-go/interlock".
	Domain string
}

// withDefaults returns c with every default filled in, or an error that names each bad field.
func (c ClientConfig) withDefaults() (ClientConfig, error) {
	var found []error
	bad := func(format string, args ...any) {
		found = append(found, fmt.Errorf("grpcmw.ClientConfig: "+format, args...))
	}
	name := strings.ToLower(c.Header)
	if name == "" {
		name = "idempotency-key"
	}
	if reason := neverKept(name); reason != "" {
		bad("Header is %q, which %s; name one for the key", c.Header, reason)
	}
	for _, method := range c.Methods {
		if _, _, err := split(method); err != nil {
			found = append(found, err)
		}
	}
	if c.MaxAttempts < 0 || c.MaxAttempts > 1000 {
		bad("MaxAttempts is %d; it must be from 1 to 1000, and 0 is the default of 10", c.MaxAttempts)
	}
	if c.MaxWait != 0 && (c.MaxWait < time.Second || c.MaxWait > 24*time.Hour) {
		bad("MaxWait is %v; it must be from 1s to 24h, and 0 is the default of 1m", c.MaxWait)
	}
	c.Header = name
	c.Methods = slices.Clone(c.Methods)
	if c.NewKey == nil {
		c.NewKey = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 10
	}
	if c.MaxWait == 0 {
		c.MaxWait = time.Minute
	}
	if c.Domain == "" {
		c.Domain = defaultDomain
	}
	return c, errors.Join(found...)
}

const defaultDomain = "github.com/interlock-go/interlock"

// UnaryClientInterceptor returns the client's side of a [dedupe.Once]: an interceptor that gives each
// unary call one idempotency key. It has every default of [ClientConfig].
//
//	grpc.NewClient(target, grpc.WithUnaryInterceptor(grpcmw.UnaryClientInterceptor()))
//
// The key is the one that the call has in its outgoing metadata already, even an empty one; or else
// that of its context (see [dedupe.ContextWithKey]); or else a new one. It stays the same over
// attempts, gRPC's own among them.
//
// A call that a guard turned away as in flight, resource locked or store unavailable is sent again
// after the time that its RetryInfo asks for, and up to a quarter of that longer with each refusal in
// a row. The last refusal is returned, as it came, after [ClientConfig].MaxAttempts, and at once when
// the wait is over MaxWait or reaches the deadline of the context. Every other answer is returned
// too, among them those that say that the key was used for another request, and the ABORTED and
// UNAVAILABLE of services that say nothing about a guard: only ErrorInfo of the domain counts. Call
// options such as grpc.Header show the last attempt. [Replayed] tells whether the service gave an
// earlier answer again.
//
// It belongs outside everything that sends calls again: first in grpc.WithChainUnaryInterceptor,
// before a retrying interceptor. On the inside, each attempt would be a call with a key of its own,
// and run again. Whatever sends again from further out, such as a loop around the call, gives the
// attempts the same key with [dedupe.ContextWithKey].
func UnaryClientInterceptor() grpc.UnaryClientInterceptor {
	return must(ClientConfig{}.Unary())
}

// Unary is [UnaryClientInterceptor] with the configuration. The error names every bad field.
func (c ClientConfig) Unary() (grpc.UnaryClientInterceptor, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return (&client{config: c}).unary, nil
}

// Replayed reports whether a service gave an earlier answer again, response or error: the call was
// not carried out this time. The header is that of the call's option grpc.Header.
func Replayed(header metadata.MD) bool {
	values := header.Get(replayedHeader)
	return len(values) == 1 && values[0] == "true"
}

// client is what the calls of one configuration share.
type client struct {
	config  ClientConfig
	methods methodCache
}

func (c *client) unary(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	ctx, err := c.withKey(ctx, method)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := invoke(ctx, method, request, response, conn, options...)
		if err == nil || attempt == c.config.MaxAttempts {
			return err
		}
		after, refused := c.turnedAway(err)
		if !refused {
			return err
		}
		wait, ok := c.wait(ctx, after, attempt)
		if !ok {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

var errNoClientKey = status.Error(codes.InvalidArgument, "grpcmw: the idempotency key of the call is empty")

// withKey returns the context of a call with its key in the outgoing metadata.
func (c *client) withKey(ctx context.Context, method string) (context.Context, error) {
	if !c.needsKey(method) {
		return ctx, nil
	}
	if md, ok := metadata.FromOutgoingContext(ctx); ok {
		if _, has := md[c.config.Header]; has {
			return ctx, nil
		}
	}
	key, ok := dedupe.KeyFrom(ctx)
	if !ok {
		key = c.config.NewKey()
	}
	if key == "" {
		return nil, errNoClientKey
	}
	return metadata.AppendToOutgoingContext(ctx, c.config.Header, key), nil
}

func (c *client) needsKey(method string) bool {
	if c.config.Methods == nil {
		return !c.methods.find(method).safe
	}
	service := method[:strings.LastIndexByte(method, '/')+1]
	return slices.Contains(c.config.Methods, method) || slices.Contains(c.config.Methods, service+"*")
}

// turnedAway reports whether an error is a refusal of ours and the call may be repeated, and after
// what time.
func (c *client) turnedAway(err error) (after time.Duration, refused bool) {
	after = time.Second
	for _, detail := range status.Convert(err).Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			refused = refused || detail.GetDomain() == c.config.Domain && retryable(detail.GetReason())
		case *errdetails.RetryInfo:
			after = max(after, detail.GetRetryDelay().AsDuration())
		}
	}
	return after, refused
}

func retryable(reason string) bool {
	return slices.ContainsFunc(dedupe.Outcomes(), func(o dedupe.Outcome) bool {
		return o.Retryable() && o.Reason() == reason
	})
}

// wait returns how long to wait after so many refusals, if it is worth it.
func (c *client) wait(ctx context.Context, after time.Duration, refusals int) (time.Duration, bool) {
	if after > c.config.MaxWait {
		return 0, false
	}
	// Those who were refused together do not come back together.
	longer := rand.N(after*time.Duration(refusals)/4 + 1) //nolint:gosec // nobody gains by guessing it
	longer = min(longer, c.config.MaxWait-after)
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline) - after
		if left <= 0 {
			return 0, false
		}
		longer = min(longer, left/2) // there has to be time for an answer
	}
	return after + longer, true
}

// sleep waits, or returns the status of the context that is over.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}
