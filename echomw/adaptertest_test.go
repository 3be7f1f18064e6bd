package echomw_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/adaptertest"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/echomw"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

func TestAdapter(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, adapter(nil), adaptertest.Stores())
}

// TestAdapterWithAnotherErrorHandler shows that nothing depends on Echo's own.
func TestAdapterWithAnotherErrorHandler(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, adapter(renderScenario), map[string]func(testing.TB) dedupe.Store{
		"memstore": func(testing.TB) dedupe.Store { return memstore.New() },
	})
}

// adapter is what the scenarios have to know about Echo with an error handler, Echo's own if it is nil.
func adapter(render echo.HTTPErrorHandler) adaptertest.Adapter {
	return adaptertest.Adapter{
		Serve: func(t testing.TB, m adaptertest.Mount) adaptertest.Client {
			return serveScenario(t, m, render)
		},
		Caller:   keyfuncs.Value("caller"),
		Refusals: adaptertest.HTTPRefusals(),
		Failures: []adaptertest.Failure{
			{Name: "HTTPError422", Status: "422 Unprocessable Entity", Kept: true},
			{Name: "HTTPError409", Status: "409 Conflict"},
			{Name: "HTTPErrorAround", Status: "404 Not Found", Kept: true},
			{Name: "HTTPErrorWrapped", Status: "500 Internal Server Error"}, // as Echo has it
			{Name: "HTTPErrorOfAStruct", Status: "402 Payment Required", Kept: true},
			{Name: "ErrNotFound", Status: "404 Not Found", Kept: true},
			{Name: "ErrUnauthorized", Status: "401 Unauthorized"},
			{Name: "PlainError", Status: "500 Internal Server Error"},
			{Name: "JSON422", Status: "422 Unprocessable Entity", Kept: true},
			{Name: "Problem422", Status: "422 Unprocessable Entity", Kept: true},
			{Name: "NoContent403", Status: "403 Forbidden"},
		},
		Survives: true,
	}
}

var failures = map[string]func(echo.Context) error{
	"HTTPError422": func(echo.Context) error { return echo.NewHTTPError(http.StatusUnprocessableEntity, "short of money") },
	"HTTPError409": func(echo.Context) error { return echo.NewHTTPError(http.StatusConflict, "busy") },
	"HTTPErrorAround": func(echo.Context) error {
		return echo.NewHTTPError(http.StatusNotFound, "no such account").SetInternal(errors.New("no rows"))
	},
	"HTTPErrorWrapped": func(echo.Context) error {
		return fmt.Errorf("withdraw: %w", echo.NewHTTPError(http.StatusGone, "closed"))
	},
	"HTTPErrorOfAStruct": func(echo.Context) error {
		return echo.NewHTTPError(http.StatusPaymentRequired, map[string]int{"balance": 3})
	},
	"ErrNotFound":     func(echo.Context) error { return echo.ErrNotFound },
	"ErrUnauthorized": func(echo.Context) error { return echo.ErrUnauthorized },
	"PlainError":      func(echo.Context) error { return errors.New("out of order") },
	"JSON422": func(c echo.Context) error {
		return c.JSON(http.StatusUnprocessableEntity, map[string]int{"balance": 3})
	},
	"Problem422": func(c echo.Context) error {
		return c.Blob(http.StatusUnprocessableEntity, "application/problem+json", []byte(`{"type":"https://bank.example/short","status":422}`))
	},
	"NoContent403": func(c echo.Context) error { return c.NoContent(http.StatusForbidden) },
}

func serveScenario(t testing.TB, m adaptertest.Mount, render echo.HTTPErrorHandler) adaptertest.Client {
	e := newEcho()
	if render != nil {
		e.HTTPErrorHandler = render
	}
	handler := func(c echo.Context) error {
		text, err := adaptertest.ReadText(c.Request().Body)
		if err != nil {
			return echo.NewHTTPError(http.StatusTeapot, err)
		}
		a := m.Handler(c.Request().Context(), text)
		if a.Kept != "" {
			c.Response().Header().Set(adaptertest.KeptHeader, a.Kept)
		}
		if a.Unkept != "" {
			c.Response().Header().Set(adaptertest.UnkeptHeader, a.Unkept)
		}
		switch {
		case a.Err != nil:
			return a.Err
		case a.Failure != "":
			return failures[a.Failure](c)
		default:
			return c.String(http.StatusOK, a.Text)
		}
	}
	var group, route []echo.MiddlewareFunc
	if m.Recover == adaptertest.Outside {
		group = append(group, middleware.Recover())
	}
	group = append(group, func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Set("caller", c.Request().Header.Get(adaptertest.CallerHeader))
			if m.Deadline != nil {
				ctx, cancel := m.Deadline(c.Request().Context())
				defer cancel()
				c.SetRequest(c.Request().WithContext(ctx))
			}
			return next(c)
		}
	})
	if len(m.Group) > 0 {
		group = append(group, guardScenario(t, m, m.Group))
	}
	if len(m.Route) > 0 {
		route = append(route, guardScenario(t, m, m.Route))
	}
	if m.Recover == adaptertest.Inside {
		route = append(route, middleware.Recover())
	}
	accounts := e.Group("/accounts", group...)
	accounts.POST("/:id/withdraw", handler, route...)
	accounts.POST("/:id/deposit", handler, route...)
	accounts.GET("/:id", handler, route...)

	server := httptest.NewUnstartedServer(e)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return adaptertest.HTTPClient(t, server.URL)
}

// renderScenario is an error handler that does not ask whether the response is committed.
func renderScenario(err error, c echo.Context) {
	var refusal *dedupe.Refusal
	if errors.As(err, &refusal) {
		httpmw.WriteProblem(c.Response(), c.Request(), refusal)
		return
	}
	status := http.StatusInternalServerError
	if known, ok := err.(*echo.HTTPError); ok { // as Echo's own does
		status = known.Code
	}
	http.Error(c.Response(), err.Error(), status)
}

func guardScenario(t testing.TB, m adaptertest.Mount, guards []*dedupe.Guard) echo.MiddlewareFunc {
	t.Helper()
	config := echomw.Config{Guards: guards, HTTP: httpmw.Config{MaxBody: int64(m.MaxPayload), MaxAnswer: m.MaxAnswer}}
	guarded, err := config.ToMiddleware()
	if err != nil {
		t.Fatal(err)
	}
	return guarded
}
