package echomw

import (
	"net/http"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
)

// New returns a middleware that takes each request through guards, the outermost first, before the
// handler runs. It has every default of [Config], and panics on a nil guard: whoever built that one
// did not look at its error.
//
// Put it on routes or groups, or into Echo.Use, where path parameters and the route are known:
//
//	e.POST("/accounts/:id/withdraw", withdraw, echomw.New(once, account))
func New(guards ...*dedupe.Guard) echo.MiddlewareFunc {
	guarded, err := Config{Guards: guards}.ToMiddleware()
	if err != nil {
		panic(err)
	}
	return guarded
}

// Config is how requests and answers are translated between Echo and the guards. The zero value
// has every default, and no guards.
type Config struct {
	// Skipper lets requests pass unguarded for which it returns true. It is called by many
	// goroutines at once. The default is to skip none.
	Skipper middleware.Skipper

	// Guards are what requests are taken through, the outermost first.
	Guards []*dedupe.Guard

	// HTTP is what does not depend on Echo: limits, and what is kept. Its defaults differ in three
	// places. Operation is the method and Echo's path of the route; Param is Context.Param; and
	// without Refuse, a refusal is returned as an error, for Echo's error handler to render. With
	// Refuse, that has written the answer and no error is returned.
	HTTP httpmw.Config
}

// ToMiddleware returns a middleware with the configuration. The error names every bad field and nil
// guard.
func (c Config) ToMiddleware() (echo.MiddlewareFunc, error) {
	g := guarded{skip: c.Skipper, refuse: c.HTTP.Refuse}
	if g.skip == nil {
		g.skip = middleware.DefaultSkipper
	}
	if c.HTTP.BodyTooLarge == nil {
		c.HTTP.BodyTooLarge = overBodyLimit
	}
	var err error
	if g.middleware, err = c.HTTP.Middleware(c.Guards...); err != nil {
		return nil, err
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error { return g.serve(c, next) }
	}, nil
}

// overBodyLimit recognizes the error of Echo's BodyLimit.
func overBodyLimit(err error) bool { return echo.StatusCode(err) == http.StatusRequestEntityTooLarge }

type guarded struct {
	middleware *httpmw.Middleware
	skip       middleware.Skipper
	refuse     func(http.ResponseWriter, *http.Request, *dedupe.Refusal) // nil: Echo's error handler
}

func (g *guarded) serve(c *echo.Context, next echo.HandlerFunc) error {
	if g.skip(c) {
		return next(c)
	}
	x := &exchange{Context: c, next: next, request: c.Request(), response: c.Response()}
	refusal, err := g.middleware.ServeExchange(x, x.writer(), x.request)
	switch {
	case refusal != nil && g.refuse != nil:
		g.refuse(x.response, x.request, refusal)
		return nil
	case refusal != nil:
		return refused(c, refusal)
	case err != nil && x.answered():
		x.close()
	}
	return err
}

// exchange is one request and its answer, an [httpmw.Exchange].
type exchange struct {
	*echo.Context

	next     echo.HandlerFunc
	request  *http.Request
	response http.ResponseWriter
	recorded *echo.Response // what the handler sees instead of response if its answer is recorded
}

// Handle implements httpmw.Exchange. A recorded answer gets an echo.Response of its own, so that
// whatever hooks the handler adds count for the record, and those of outer middleware for each
// client that the answer is sent to.
func (x *exchange) Handle(w http.ResponseWriter, r *http.Request, recording *httpmw.Recording) error {
	x.SetRequest(r)
	defer x.SetRequest(x.request)
	if recording == nil {
		return x.next(x.Context)
	}
	x.recorded = echo.NewResponse(w, x.Logger())
	x.recorded.Status = http.StatusOK // as Echo begins
	x.SetResponse(x.recorded)
	defer x.SetResponse(x.response)

	err := x.next(x.Context)
	if recording.Misses(err) {
		x.Echo().HTTPErrorHandler(x.Context, err)
	}
	return err
}

// answered reports that an answer was recorded and sent.
func (x *exchange) answered() bool { return x.recorded != nil && x.recorded.Committed }

// close leaves the context with the response that was recorded, committed and closed: whoever
// renders the handler's error once more, now that the client has been told, does so to nobody. That
// the response beneath is committed would not stop him if Gzip still held it back, nor an error
// handler that does not ask.
func (x *exchange) close() { x.SetResponse(x.recorded) }

// writer returns the response for the recorder. An echo.Response lets informational answers pass
// then: Echo would take one for the answer.
func (x *exchange) writer() http.ResponseWriter {
	if response, ok := x.response.(*echo.Response); ok {
		return writer{response}
	}
	return x.response
}

type writer struct{ *echo.Response }

func (w writer) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.Response.WriteHeader(status)
}
