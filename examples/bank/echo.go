package main

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/echomw"
	"github.com/interlock-go/interlock/httpmw"
)

// newEcho returns the JSON API for Echo: the same endpoints behind the same guards. Handlers return
// their errors, and so do the guards; one error handler renders them all.
func (b *bank) newEcho() (*echo.Echo, error) {
	translate := httpmw.Config{Keep: keepStatus}
	withdraw, err1 := echomw.Config{Guards: b.guards.withdraw, HTTP: translate}.ToMiddleware()
	transfer, err2 := echomw.Config{Guards: b.guards.transfer, HTTP: translate}.ToMiddleware()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	e := echo.New()
	e.HTTPErrorHandler = b.handleEchoError
	e.Match([]string{http.MethodGet, http.MethodHead}, "/accounts/:id", echoHandler(b.getAccount))
	e.POST("/accounts/:id/withdraw", echoHandler(b.postWithdrawal), withdraw)
	e.POST("/accounts/:id/transfer", echoHandler(b.postTransfer), transfer)
	return e, nil
}

func echoHandler(serve endpoint) echo.HandlerFunc {
	return func(c echo.Context) error { return serve(c.Response(), c.Request(), c.Param("id")) }
}

// handleEchoError answers with err as the API for net/http does. Requests that no route takes get
// Echo's own answer.
func (b *bank) handleEchoError(err error, c echo.Context) {
	var refusal *dedupe.Refusal
	var routing *echo.HTTPError
	switch {
	case c.Response().Committed: // a guard had it rendered, to keep the answer
	case errors.As(err, &refusal): // first, for a refusal is an echo.HTTPError as well
		httpmw.WriteProblem(c.Response(), c.Request(), refusal)
	case errors.As(err, &routing):
		c.Echo().DefaultHTTPErrorHandler(err, c)
	default:
		b.writeProblem(c.Response(), c.Request().Method+" "+c.Path(), err)
	}
}
