package echomw

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
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
		return func(c echo.Context) error { return g.serve(c, next) }
	}, nil
}

type guarded struct {
	middleware *httpmw.Middleware
	skip       middleware.Skipper
	refuse     func(http.ResponseWriter, *http.Request, *dedupe.Refusal) // nil: Echo's error handler
}

func (g *guarded) serve(c echo.Context, next echo.HandlerFunc) error {
	if g.skip(c) {
		return next(c)
	}
	x := &exchange{Context: c, next: next, request: c.Request(), response: c.Response()}
	refusal, err := g.middleware.ServeExchange(x, writer{x.response}, x.request)
	switch {
	case refusal != nil && g.refuse != nil:
		g.refuse(x.response, x.request, refusal)
		return nil
	case refusal != nil:
		return refused(c, refusal)
	case err != nil && x.answered():
		return x.close(err)
	default:
		return err
	}
}

// exchange is one request and its answer, an [httpmw.Exchange].
type exchange struct {
	echo.Context

	next     echo.HandlerFunc
	request  *http.Request
	response *echo.Response
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
	x.recorded = echo.NewResponse(w, x.Echo())
	x.recorded.Status = http.StatusOK // as Echo begins
	x.SetResponse(x.recorded)
	defer x.SetResponse(x.response)

	err := x.next(x.Context)
	if recording.Misses(err) {
		x.Error(err)
	}
	return err
}

// answered reports that an answer was recorded and sent.
func (x *exchange) answered() bool { return x.recorded != nil && x.recorded.Committed }

// close returns err, which the client has been told, to outer middleware. From now on the context
// has the response that is recorded, committed and closed: who renders the error once more does so
// to nobody, whether he asks for Committed or not.
func (x *exchange) close(err error) error {
	if dropsAnswerOnError(x.response.Writer) {
		return nil
	}
	x.SetResponse(x.recorded)
	return err
}

// writer is an echo.Response that lets informational answers pass: Echo would take one for the
// answer.
type writer struct{ *echo.Response }

func (w writer) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		w.Writer.WriteHeader(status)
		return
	}
	w.Response.WriteHeader(status)
}
