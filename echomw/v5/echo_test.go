package echomw_test

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/interlock-go/interlock/echomw/internal/echotest"
	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/interlock-go/interlock/echomw/v5"
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
				config.Skipper = func(ctx *echo.Context) bool { return c.Skipper(ctx) }
			}
			return config.ToMiddleware()
		},
		Middleware: func(layer echotest.Layer) echo.MiddlewareFunc {
			return func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error { return layer(c, func() error { return next(c) }) }
			}
		},
		HTTPError: func(status int, message string) error { return echo.NewHTTPError(status, message) },
		Code:      echo.StatusCode,
		Response: func(c echotest.Context) echotest.Response {
			r := response(c)
			return echotest.Response{Committed: r.Committed, Status: r.Status, Size: r.Size}
		},
		Writer:          func(c echotest.Context) http.ResponseWriter { return c.(*echo.Context).Response() },
		Beneath:         func(c echotest.Context) http.ResponseWriter { return response(c).ResponseWriter },
		Before:          func(c echotest.Context, hook func()) { response(c).Before(hook) },
		After:           func(c echotest.Context, hook func()) { response(c).After(hook) },
		Render:          func(c echotest.Context, err error) { c.(*echo.Context).Echo().HTTPErrorHandler(c.(*echo.Context), err) },
		RendersProblems: true,
		Gzip:            func(n int) echo.MiddlewareFunc { return middleware.GzipWithConfig(middleware.GzipConfig{MinLength: n}) },
		CORS:            func() echo.MiddlewareFunc { return middleware.CORS("*") },
		RequestID:       middleware.RequestID,
		Recover:         middleware.Recover,
		BodyLimit:       middleware.BodyLimit,
		ContextTimeout:  middleware.ContextTimeout,
		Wrap:            echo.WrapMiddleware,
	}
}

func response(c echotest.Context) *echo.Response {
	r, err := echo.UnwrapResponse(c.(*echo.Context).Response())
	if err != nil {
		panic(err)
	}
	return r
}

func serve(app echotest.App[echo.MiddlewareFunc]) http.Handler {
	e := newEcho()
	e.Pre(app.Pre...)
	e.Use(app.Use...)
	e.Group("/accounts", app.Group...).POST("/:id/withdraw", func(c *echo.Context) error { return app.Handler(c) }, app.Route...)
	if app.ErrorHandler != nil {
		byDefault := e.HTTPErrorHandler
		e.HTTPErrorHandler = func(c *echo.Context, err error) {
			app.ErrorHandler(c, err, func() { byDefault(c, err) })
		}
	}
	return e
}

func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	return e
}
