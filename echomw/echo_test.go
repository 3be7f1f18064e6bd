package echomw_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/interlock-go/interlock/echomw"
	"github.com/interlock-go/interlock/echomw/internal/echotest"
)

// TestEcho runs what must hold under every version.
func TestEcho(t *testing.T) { echotest.Run(t, version()) }

// BenchmarkEcho measures what echomw adds to Echo beside what httpmw adds to net/http.
func BenchmarkEcho(b *testing.B) { echotest.Benchmark(b, version()) }

func version() echotest.Version[echo.MiddlewareFunc] {
	return echotest.Version[echo.MiddlewareFunc]{
		Serve: serve,
		New:   echomw.New,
		ToMiddleware: func(c echotest.Config) (echo.MiddlewareFunc, error) {
			config := echomw.Config{Guards: c.Guards, HTTP: c.HTTP}
			if c.Skipper != nil {
				config.Skipper = func(ctx echo.Context) bool { return c.Skipper(ctx) }
			}
			return config.ToMiddleware()
		},
		Middleware: func(layer echotest.Layer) echo.MiddlewareFunc {
			return func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error { return layer(c, func() error { return next(c) }) }
			}
		},
		HTTPError: func(status int, message string) error { return echo.NewHTTPError(status, message) },
		Code: func(err error) int {
			var found *echo.HTTPError
			if errors.As(err, &found) {
				return found.Code
			}
			return 0
		},
		Response: func(c echotest.Context) echotest.Response {
			r := response(c)
			return echotest.Response{Committed: r.Committed, Status: r.Status, Size: r.Size}
		},
		Writer:         func(c echotest.Context) http.ResponseWriter { return response(c) },
		Beneath:        func(c echotest.Context) http.ResponseWriter { return response(c).Writer },
		Before:         func(c echotest.Context, hook func()) { response(c).Before(hook) },
		After:          func(c echotest.Context, hook func()) { response(c).After(hook) },
		Render:         func(c echotest.Context, err error) { c.(echo.Context).Error(err) },
		Gzip:           func(n int) echo.MiddlewareFunc { return middleware.GzipWithConfig(middleware.GzipConfig{MinLength: n}) },
		CORS:           middleware.CORS,
		RequestID:      middleware.RequestID,
		Recover:        middleware.Recover,
		BodyLimit:      func(n int64) echo.MiddlewareFunc { return middleware.BodyLimit(fmt.Sprint(n)) },
		ContextTimeout: middleware.ContextTimeout,
		Wrap:           echo.WrapMiddleware,
	}
}

func response(c echotest.Context) *echo.Response { return c.(echo.Context).Response() }

func serve(app echotest.App[echo.MiddlewareFunc]) http.Handler {
	e := newEcho()
	e.Pre(app.Pre...)
	e.Use(app.Use...)
	e.Group("/accounts", app.Group...).POST("/:id/withdraw", func(c echo.Context) error { return app.Handler(c) }, app.Route...)
	if app.ErrorHandler != nil {
		e.HTTPErrorHandler = func(err error, c echo.Context) {
			app.ErrorHandler(c, err, func() { e.DefaultHTTPErrorHandler(err, c) })
		}
	}
	return e
}

func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	return e
}
