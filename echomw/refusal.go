package echomw

import (
	"errors"
	"net/http"
	"reflect"

	"github.com/labstack/echo/v4"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
)

// refused returns a refusal as an Echo error. Its message is text, as most error handlers expect;
// Echo's own would make {"message": text} of that, and gets a problem to marshal instead.
func refused(c echo.Context, refusal *dedupe.Refusal) error {
	response := c.Response()
	body := httpmw.NewProblemBody(response.Header(), refusal)
	err := echo.NewHTTPError(body.Status, body.String()).SetInternal(refusal)
	if hasDefaultErrorHandler(c.Echo()) {
		err.Message = body
		response.Before(func() { body.SetContentType(response.Header()) })
	}
	return err
}

// hasDefaultErrorHandler compares code: method values of all Echos are the same function. One that
// wraps the default is the application's own.
func hasDefaultErrorHandler(e *echo.Echo) bool {
	return reflect.ValueOf(e.HTTPErrorHandler).Pointer() == reflect.ValueOf(e.DefaultHTTPErrorHandler).Pointer()
}

// overBodyLimit recognizes the error of Echo's BodyLimit.
func overBodyLimit(err error) bool {
	var limit *echo.HTTPError
	return errors.As(err, &limit) && limit.Code == http.StatusRequestEntityTooLarge
}

// dropsAnswerOnError reports that an answer is on its way through Echo's Timeout, which drops what
// was written when it gets an error as well, and leaves the rest to an error handler that finds the
// response committed. It gets no error then. Its writer, http.TimeoutHandler's, has no better mark
// than its name.
func dropsAnswerOnError(w http.ResponseWriter) bool {
	for w != nil {
		if reflect.TypeOf(w).String() == "*http.timeoutWriter" {
			return true
		}
		outer, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return false
		}
		w = outer.Unwrap()
	}
	return false
}
