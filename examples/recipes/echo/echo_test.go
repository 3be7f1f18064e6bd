package echo_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/echomw"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
	"github.com/labstack/echo/v4"
)

// A handler refuses a payment by returning an error, as handlers of Echo do.
func TestReturnedError(t *testing.T) {
	const refused = `{"message":"short of money"}`
	for _, test := range []struct {
		name          string
		middleware    func(*dedupe.Guard) echo.MiddlewareFunc
		status        int
		first, repeat string
		runs          int32
	}{
		{
			name: "no guard",
			middleware: func(*dedupe.Guard) echo.MiddlewareFunc {
				return func(next echo.HandlerFunc) echo.HandlerFunc { return next }
			},
			status: http.StatusUnprocessableEntity, first: refused, repeat: refused, runs: 2,
		},
		{
			name:       "echomw",
			middleware: func(once *dedupe.Guard) echo.MiddlewareFunc { return echomw.New(once) },
			status:     http.StatusUnprocessableEntity, first: refused, repeat: "replayed: " + refused, runs: 1,
		},
		{
			name:       "echo.WrapMiddleware: the payment seems to succeed",
			middleware: func(once *dedupe.Guard) echo.MiddlewareFunc { return echo.WrapMiddleware(httpmw.New(once)) },
			status:     http.StatusOK, first: "", repeat: "replayed: ", runs: 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			once, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, keyfuncs.Header("Idempotency-Key"))
			if err != nil {
				t.Fatal(err)
			}
			var runs atomic.Int32
			e := echo.New()
			e.POST("/payments", func(echo.Context) error {
				runs.Add(1)
				return echo.NewHTTPError(http.StatusUnprocessableEntity, "short of money")
			}, test.middleware(once))
			server := httptest.NewServer(e)
			defer server.Close()

			for i, want := range []string{test.first, test.repeat} {
				status, body := pay(t, server.URL+"/payments")
				if status != test.status || body != want {
					t.Errorf("answer %d: got %d %q, want %d %q", i+1, status, body, test.status, want)
				}
			}
			if runs.Load() != test.runs {
				t.Errorf("%d runs, want %d", runs.Load(), test.runs)
			}
		})
	}
}

func pay(t *testing.T, url string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "k")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	body = strings.TrimSpace(string(text))
	if httpmw.Replayed(response) {
		body = "replayed: " + body
	}
	return response.StatusCode, body
}
