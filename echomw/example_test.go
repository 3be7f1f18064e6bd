package echomw_test

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/echomw"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// The examples serve requests without a network, and print what a client would see.
func post(e *echo.Echo, key, path string) {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"amount":60}`))
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	fmt.Printf("%d %s replayed: %q\n", w.Code, strings.TrimSpace(w.Body.String()), w.Header().Get("Idempotent-Replayed"))
}

// A request that is sent twice runs once, and its answer is given twice. That holds for one that
// fails as well.
func ExampleNew() {
	store := memstore.New() // in a service with replicas: redisstore.New(client)
	once, err := dedupe.Once(store, keyfuncs.Anyone, keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	account, err := dedupe.Serialize(store, "account", keyfuncs.Param("id"))
	if err != nil {
		log.Fatal(err)
	}

	balance := 100
	e := echo.New()
	e.POST("/accounts/:id/withdraw", func(c echo.Context) error {
		if balance < 60 {
			return echo.NewHTTPError(http.StatusUnprocessableEntity, "short of money")
		}
		balance -= 60
		return c.String(http.StatusOK, fmt.Sprintf("withdrawn, %d left", balance))
	}, echomw.New(once, account))

	post(e, "a", "/accounts/7/withdraw")
	post(e, "a", "/accounts/7/withdraw")
	post(e, "b", "/accounts/7/withdraw")
	balance += 100
	post(e, "b", "/accounts/7/withdraw")
	// Output:
	// 200 withdrawn, 40 left replayed: ""
	// 200 withdrawn, 40 left replayed: "true"
	// 422 {"message":"short of money"} replayed: ""
	// 422 {"message":"short of money"} replayed: "true"
}

// The application renders refusals as it renders all errors, and leaves some accounts unguarded.
func ExampleConfig() {
	once, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	guarded, err := echomw.Config{
		Skipper: func(c echo.Context) bool { return c.Param("id") == "test" },
		Guards:  []*dedupe.Guard{once},
		HTTP:    httpmw.Config{MaxBody: 64 << 10},
	}.ToMiddleware()
	if err != nil {
		log.Fatal(err)
	}

	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		var refusal *dedupe.Refusal
		if errors.As(err, &refusal) {
			_ = c.String(httpmw.Status(refusal.Outcome), "refused: "+refusal.Outcome.String())
			return
		}
		e.DefaultHTTPErrorHandler(err, c)
	}
	e.POST("/accounts/:id/withdraw", func(c echo.Context) error {
		return c.String(http.StatusOK, "withdrawn")
	}, guarded)

	post(e, "", "/accounts/7/withdraw")
	post(e, "", "/accounts/test/withdraw")
	// Output:
	// 400 refused: key-missing replayed: ""
	// 200 withdrawn replayed: ""
}
