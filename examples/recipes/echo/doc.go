// Package echo shows why package echomw is there, and not echo.WrapMiddleware around httpmw.
//
// Echo renders the error that a handler returns after all middleware has returned. A net/http
// middleware in the chain has not seen an answer by then: it records "200, empty" for a 422, sends
// that, and replays it. To the client, a payment that was refused has succeeded. echomw has Echo
// render the error inside the recording. The tests show both.
package echo
