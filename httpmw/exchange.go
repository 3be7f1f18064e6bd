package httpmw

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
)

// Exchange is one request inside a framework on top of net/http, whose handlers return errors. The
// contexts of Echo have its methods but Handle. Key functions see what the framework knows of the
// request where [Config] does not say otherwise.
type Exchange interface {
	// Path returns the pattern of the route, "" if there is none yet. With the method it is the
	// Operation.
	Path() string

	// Param returns a path parameter, "" for none. It may still be escaped if the URL has a RawPath.
	Param(name string) string

	// Get returns what middleware has stored under name, nil for nothing. It comes before the value
	// of the request's context.
	Get(name string) any

	// Handle runs the handler on w and r and returns its error, which the framework renders later.
	// For an answer that is recorded, later is too late: recording is not nil then, and an error
	// that it misses has to be rendered to w before Handle returns.
	Handle(w http.ResponseWriter, r *http.Request, recording *Recording) error
}

// Recording is an answer that is to be kept, while the handler runs.
type Recording struct {
	recorder *recorder
	ctx      context.Context //nolint:containedctx // the handler's context, for as long as it runs
}

// Misses reports whether err has to be rendered for the answer to be complete: the handler has
// returned it instead of an answer. The error of a handler that stopped because its context ended is
// not missed. It is no verdict on the request, whatever it would be rendered as.
func (r *Recording) Misses(err error) bool {
	return err != nil && !r.recorder.begun() && !r.gaveUp(err)
}

func (r *Recording) gaveUp(err error) bool {
	return r.ctx.Err() != nil &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Cause(r.ctx)))
}

// ServeExchange is [Middleware.Serve] for a framework whose handlers return errors. It returns
// either the refusal of a guard, with nothing written, or the error of x.Handle. An error without an
// answer is not kept. After that, what is written to a w that was recorded goes nowhere.
func (m *Middleware) ServeExchange(x Exchange, w http.ResponseWriter, r *http.Request) (*dedupe.Refusal, error) {
	c := &call{request: request{config: &m.config, http: r, exchange: x}, middleware: m, w: w}
	if err := c.serve(); err != nil {
		var refusal *dedupe.Refusal
		if errors.As(err, &refusal) {
			return refusal, nil
		}
		return nil, err
	}
	return nil, c.err
}

// invokeExchange is Invoke under a framework.
func (c *call) invokeExchange(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	if c.recorder == nil {
		c.err = c.exchange.Handle(w, r, nil)
		return
	}
	c.recording = Recording{c.recorder, ctx}
	if c.err = c.exchange.Handle(w, r, &c.recording); c.err != nil && !c.recorder.begun() {
		c.recorder.disown()
	}
}

func exchangeOperation(x Exchange, r *http.Request) string {
	path := x.Path()
	if path == "" {
		path = r.URL.Path
	}
	return r.Method + " " + path
}

// exchangeParam returns a parameter as http.Request.PathValue would: routers that match the
// RawPath leave it escaped, and account %37 is account 7.
func exchangeParam(x Exchange, r *http.Request, name string) string {
	value := x.Param(name)
	if r.URL.RawPath != "" && strings.Contains(value, "%") {
		if plain, err := url.PathUnescape(value); err == nil {
			return plain
		}
	}
	return value
}
