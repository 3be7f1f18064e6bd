package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/bench/internal/wire"
)

// The frameworks and variants of a [Handler].
const (
	NetHTTP = "net/http" // a mux's ServeHTTP, without a network
	Echo    = "Echo"     // an Echo v4's ServeHTTP, without a network
	GRPC    = "gRPC"     // client and server over bufconn, an in-memory connection

	Bare         = "bare"          // the handler alone
	FloorVariant = "floor"         // around it SET NX PX and a script that compares and deletes
	Serialize    = "Serialize"     // each request its own resource
	OnceFresh    = "Once fresh"    // each request its own key
	OnceReplayed = "Once replayed" // every request was answered before
)

// Frameworks lists the frameworks.
func Frameworks() []string { return []string{NetHTTP, Echo, GRPC} }

// Variants lists the variants.
func Variants() []string { return []string{Bare, FloorVariant, Serialize, OnceFresh, OnceReplayed} }

// client sends requests, one at a time.
type client interface {
	// send sends a request with an idempotency key, and reports whether an earlier answer came.
	send(ctx context.Context, key string) (replayed bool, err error)
}

// handler serves requests.
type handler struct {
	job      Job
	service  *service
	clients  []client // one for each goroutine
	stop     func() error
	expected bool // that answers are replays
}

// service is what the handler does and what its runs add up to.
type service struct {
	ran    atomic.Int64
	answer []byte
}

func (s *service) run() []byte {
	s.ran.Add(1)
	return s.answer
}

var errUnexpected = errors.New("an answer that should not be a replay is one, or the reverse")

func openHandler(job Job, counter *wire.Counter) (*handler, error) {
	guarding, err := newGuarding(job, counter)
	if err != nil {
		return nil, err
	}
	h := &handler{job: job, service: &service{answer: body(job.Handler.Answer)}, stop: guarding.close, expected: job.Handler.Variant == OnceReplayed}
	switch job.Handler.Framework {
	case NetHTTP:
		h.clients = serveHTTP(newMux(guarding, h.service), job.Goroutines)
	case Echo:
		h.clients = serveHTTP(newEcho(guarding, h.service), job.Goroutines)
	case GRPC:
		var stop func() error
		h.clients, stop, err = serveGRPC(guarding, h.service, job.Goroutines)
		h.stop = func() error { return errors.Join(stop(), guarding.close()) }
	default:
		err = fmt.Errorf("no framework is named %q", job.Handler.Framework)
	}
	return h, err
}

// body returns a JSON document of a size, or a small one.
func body(size int) []byte {
	const start, end = `{"id":"8e03978e","status":"done","balance":90,"note":"`, `"}`
	padding := make([]byte, max(0, size-len(start)-len(end)))
	for i := range padding {
		padding[i] = 'x'
	}
	return append(append([]byte(start), padding...), end...)
}

// warm opens connections by requests with keys of their own, and answers once what is to be replayed.
func (h *handler) warm(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for g, c := range h.clients {
		group.Go(func() error {
			for n := range 4 {
				if _, err := c.send(ctx, fmt.Sprintf("warm-up:%s:%d:%d:%d", h.job.Handler.Keys, h.job.Process, g, n)); err != nil {
					return fmt.Errorf("warm-up: %w", err)
				}
			}
			if !h.expected || h.job.Handler.Answered {
				return nil
			}
			for n := g; n < h.job.Handler.Population; n += len(h.clients) {
				if _, err := c.send(ctx, h.key(h.job.Handler.First+n)); err != nil {
					return fmt.Errorf("answer what is to be replayed: %w", err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (h *handler) key(n int) string {
	return h.job.Handler.Keys + ":" + strconv.Itoa(n)
}

func (h *handler) do(ctx context.Context, goroutine, n int, turn *Turn) error {
	number := h.job.Handler.First
	if h.expected {
		number += rand.IntN(h.job.Handler.Population) //nolint:gosec // it picks, it keeps no secret
	} else {
		number += n*len(h.clients) + goroutine
	}
	turn.Key = uint64(number) //nolint:gosec // not negative
	replayed, err := h.clients[goroutine].send(ctx, h.key(number))
	if err == nil && replayed != h.expected {
		err = errUnexpected
	}
	return err
}

func (h *handler) stall(ctx context.Context, _ time.Duration) bool {
	<-ctx.Done() // nobody waits for another
	return false
}

func (h *handler) runs() int64 { return h.service.ran.Load() }

func (h *handler) close() error { return h.stop() }
