package echomw_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/echomw"
	"github.com/interlock-go/interlock/echomw/internal/echotest"
)

// timeout is Echo's Timeout, which is deprecated and still in use. It runs what is inside it on a
// goroutine of its own.
func timeout(d time.Duration) echo.MiddlewareFunc {
	return middleware.TimeoutWithConfig(middleware.TimeoutConfig{Timeout: d}) //nolint:staticcheck // see above
}

// TestTimeoutInTime has the handler be done in time: what Timeout does with errors must not cost
// the answer.
func TestTimeoutInTime(t *testing.T) {
	t.Parallel()
	const problem = `{"type":"https://github.com/interlock-go/interlock/blob/main/httpmw/PROBLEMS.md#key-missing",` +
		`"title":"the request has no key","status":400,"retryable":false}` + "\n"
	places := map[string]func(echo.MiddlewareFunc) echotest.App[echo.MiddlewareFunc]{
		"outside": func(guard echo.MiddlewareFunc) echotest.App[echo.MiddlewareFunc] {
			return echotest.App[echo.MiddlewareFunc]{Use: list(timeout(time.Minute)), Route: list(guard)}
		},
		"outside Gzip": func(guard echo.MiddlewareFunc) echotest.App[echo.MiddlewareFunc] {
			return echotest.App[echo.MiddlewareFunc]{Use: list(timeout(time.Minute), middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 1024})), Route: list(guard)}
		},
		"inside": func(guard echo.MiddlewareFunc) echotest.App[echo.MiddlewareFunc] {
			return echotest.App[echo.MiddlewareFunc]{Route: list(guard, timeout(time.Minute))}
		},
	}
	for place, app := range places {
		for name, test := range map[string]struct {
			key     string
			handler func(echotest.Context) error
			status  int
			body    string
			replay  bool
		}{
			"an answer": {
				key: "1", handler: func(c echotest.Context) error { return c.String(http.StatusCreated, "done") },
				status: http.StatusCreated, body: "done", replay: true,
			},
			"an error": {
				key: "1", handler: func(echotest.Context) error { return echo.NewHTTPError(http.StatusUnprocessableEntity, "no") },
				status: http.StatusUnprocessableEntity, body: `{"message":"no"}` + "\n", replay: true,
			},
			"an error that is not kept": {
				key: "1", handler: func(echotest.Context) error { return errors.New("no") },
				status: http.StatusInternalServerError, body: `{"message":"Internal Server Error"}` + "\n",
			},
			"a refusal": {key: "", status: http.StatusBadRequest, body: problem},
		} {
			t.Run(name+", "+place, func(t *testing.T) {
				t.Parallel()
				app := app(echomw.New(echotest.Once(t)))
				app.Handler = test.handler
				server := echotest.Start(t, serve(app))
				for _, replay := range []bool{false, test.replay} {
					reply := echotest.Post(t, server, test.key, func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") })
					if reply.Status != test.status || reply.Body != test.body || reply.Replayed != replay {
						t.Errorf("got %+v", reply)
					}
				}
			})
		}
	}
}

// TestTimeoutTooLate has the client be told that time is up while the handler goes on. Its answer
// is what repeats get. Each request goes to an Echo of its own: the context of the one that is late
// is still in use.
func TestTimeoutTooLate(t *testing.T) {
	t.Parallel()
	begun, release, settled := make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 1)
	once := echotest.Once(t, dedupe.WithObserver(func(e dedupe.Event) {
		if e.Kind == dedupe.EventSettled {
			settled <- struct{}{}
		}
	}))
	post := func(outer ...echo.MiddlewareFunc) echotest.Reply {
		return echotest.Post(t, echotest.Start(t, serve(echotest.App[echo.MiddlewareFunc]{
			Use:   outer,
			Route: list(echomw.New(once)),
			Handler: func(c echotest.Context) error {
				begun <- struct{}{}
				<-release
				return c.String(http.StatusCreated, "done")
			},
		})), "1")
	}
	for len(begun) == 0 { // the time may be up before the handler begins
		if reply := post(timeout(time.Millisecond)); reply.Status != http.StatusServiceUnavailable {
			t.Fatalf("the first answer is %+v", reply)
		}
	}
	if reply := post(); reply.Status != http.StatusConflict {
		t.Errorf("a repeat meanwhile gets %+v", reply)
	}
	close(release)
	<-settled
	if reply := post(); reply.Status != http.StatusCreated || reply.Body != "done" || !reply.Replayed {
		t.Errorf("a repeat after it gets %+v", reply)
	}
}

func list(middleware ...echo.MiddlewareFunc) []echo.MiddlewareFunc { return middleware }
