// Package echomw puts guards in front of Echo handlers.
//
//	e.POST("/accounts/:id/withdraw", withdraw, echomw.New(once, account))
//
// It is package httpmw in Echo's terms: what is recorded, kept, limited and replayed is said there.
// This one is for Echo v5; package echomw, without v5, is for Echo v4.
//
// # Requests
//
// keyfuncs.Param is Context.Param, unescaped where Echo's router leaves it escaped; keyfuncs.Value
// with a string is Context.Get, and after that the request's context; the operation is the method
// and Echo's path of the route, "POST /accounts/:id/withdraw". Routes do not name a host: where
// several hosts share a store, give an Operation that does. Under Echo.Pre no route has been found
// yet, so that there are no parameters, and the operation is the method and the path as it was sent.
//
// # Refusals
//
// A guard that turns a request away makes the middleware return an error. It is an *echo.HTTPError
// with the status, and a [dedupe.Refusal], under errors.As; it matches the refusal's sentinels under
// errors.Is. The application's error handler renders it as it renders all errors; Retry-After and
// Cache-Control are set already. Echo's own error handler makes a problem (RFC 9457) of it, and
// so does one that wraps it.
// Outer middleware may do something else with the error: nothing has been written.
//
// # Errors of handlers
//
// Echo renders a handler's error after all middleware has returned. For an answer that is to be kept
// that is too late, so under a Once the error handler is called at once and its answer recorded. The
// error is returned all the same, for loggers. Whoever renders it again, does so to nobody.
//
// An error that is rendered to nothing is not kept, nor is that of a handler that stopped because its
// context ended: its client has left, a deadline has passed, or the lease is lost. The latter is left
// to outer middleware, unrendered. Under a Serialize alone all errors are.
//
// # Order
//
// Put middleware that speaks to one client outside of a Once, that is before it: CORS, RequestID,
// Secure, Gzip, and whatever sets cookies. Outside, it works on first answers, replays and refusals
// alike. Inside, it sees first answers only: of its headers, those that describe the body are kept,
// and a body that Gzip has compressed is replayed compressed to clients that may not have asked for
// it.
//
// Recover may be on either side. A panic releases the key. BodyLimit belongs outside; one inside
// counts a body that has been read already. Middleware that turns errors into others belongs inside
// of a Once if the answer is to be kept like that. ContextTimeout is
// well on either side.
//
// Hooks that a handler adds to the response (Before, After) run when the handler writes, and what
// they set is recorded. Hooks of outer middleware run whenever an answer is sent, replays included.
//
// # Why not echo.WrapMiddleware
//
// echo.WrapMiddleware(httpmw.New(once)) compiles, and tells clients that failures succeeded. The
// handler's error is rendered after the recording has ended, to a response that belongs to it: the
// client of a 422 gets an empty 200, and so does every repeat. What Context.Set stored is not
// found either.
package echomw
