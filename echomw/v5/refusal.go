package echomw

import (
	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/labstack/echo/v5"
)

// refusalError is a refusal as an Echo error: under errors.As it is an echo.HTTPError, an
// echo.HTTPStatusCoder and a dedupe.Refusal. Echo's own error handler, and one that wraps it, sends
// what marshals itself as it is, so that this becomes a problem.
type refusalError struct {
	*httpmw.ProblemBody

	err error // an echo.HTTPError around the refusal
}

func refused(c *echo.Context, refusal *dedupe.Refusal) error {
	body := httpmw.NewProblemBody(c.Response().Header(), refusal)
	if response, err := echo.UnwrapResponse(c.Response()); err == nil {
		response.Before(func() { body.SetContentType(response.Header()) })
	}
	return &refusalError{body, echo.NewHTTPError(body.Status, body.String()).Wrap(refusal)}
}

// Error is for logs.
func (e *refusalError) Error() string { return e.err.Error() }

// Unwrap returns the echo.HTTPError.
func (e *refusalError) Unwrap() error { return e.err }

// StatusCode implements echo.HTTPStatusCoder.
func (e *refusalError) StatusCode() int { return e.Status }
