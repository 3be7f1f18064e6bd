// Package echotest holds what echomw must do under every version of Echo, written once: the tests
// of each version bring a [Version] and call [Run].
package echotest

import (
	"net/http"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
)

// Context is what the contexts of all versions have in common.
type Context interface {
	Request() *http.Request
	SetRequest(r *http.Request)
	Path() string
	Param(name string) string
	Get(name string) any
	Set(name string, value any)
	JSON(status int, value any) error
	String(status int, text string) error
	NoContent(status int) error
}

// Version is one version of Echo. M is its type of middleware.
type Version[M any] struct {
	// Serve returns an Echo with the application.
	Serve func(App[M]) http.Handler

	// New and ToMiddleware are echomw's.
	New          func(...*dedupe.Guard) M
	ToMiddleware func(Config) (M, error)

	// Middleware turns a layer into a middleware.
	Middleware func(Layer) M

	// HTTPError returns an echo.HTTPError; Code finds the status of one in a chain, 0 for none.
	HTTPError func(status int, message string) error
	Code      func(error) int

	// Response returns the state of the context's echo.Response, and Writer what handlers write to.
	Response func(Context) Response
	Writer   func(Context) http.ResponseWriter

	// Beneath returns what the context's echo.Response writes to.
	Beneath func(Context) http.ResponseWriter

	// Before and After add hooks. Render calls the error handler.
	Before, After func(Context, func())
	Render        func(Context, error)

	// RendersProblems says that an error handler that wraps Echo's own sends refusals as problems.
	RendersProblems bool

	// Echo's own middleware.
	Gzip           func(minLength int) M
	CORS           func() M
	RequestID      func() M
	Recover        func() M
	BodyLimit      func(bytes int64) M
	ContextTimeout func(time.Duration) M
	Wrap           func(func(http.Handler) http.Handler) M
}

// Config is echomw.Config.
type Config struct {
	Skipper func(Context) bool
	Guards  []*dedupe.Guard
	HTTP    httpmw.Config
}

// App is an application with one route, POST /accounts/:id/withdraw in the group /accounts, and
// with middleware in each of Echo's places.
type App[M any] struct {
	Pre, Use, Group, Route []M
	Handler                func(Context) error

	// ErrorHandler is the application's own; byDefault calls Echo's. Nil leaves Echo's in place.
	ErrorHandler func(c Context, err error, byDefault func())
}

// Layer is a middleware for every version.
type Layer func(c Context, next func() error) error

// Response is the state of an echo.Response.
type Response struct {
	Committed bool
	Status    int
	Size      int64
}

// Run runs every test.
func Run[M any](t *testing.T, v Version[M]) {
	for name, test := range map[string]func(*testing.T, Version[M]){
		"Configuration":  testConfiguration[M],
		"Places":         testPlaces[M],
		"Requests":       testRequests[M],
		"Errors":         testErrors[M],
		"ErrorHandlers":  testErrorHandlers[M],
		"OuterLayers":    testOuterLayers[M],
		"GivingUp":       testGivingUp[M],
		"Refusals":       testRefusals[M],
		"RefusalLayers":  testRefusalLayers[M],
		"Responses":      testResponses[M],
		"Hooks":          testHooks[M],
		"Streams":        testStreams[M],
		"Compression":    testCompression[M],
		"EchoMiddleware": testEchoMiddleware[M],
		"BodyLimit":      testBodyLimit[M],
		"Panics":         testPanics[M],
		"Crowds":         testCrowds[M],
		"WrapMiddleware": testWrapMiddleware[M],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, v)
		})
	}
}
