package echotest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

var errShort = errors.New("the account is short of money")

// testErrors compares what a client gets for a handler's error with and without a Once, and then
// repeats the request: what the client got is what was recorded.
func testErrors[M any](t *testing.T, v Version[M]) {
	for name, test := range map[string]struct {
		handler func(Context) error
		status  int // 0 where versions differ
		kept    bool
	}{
		"an HTTPError": {
			handler: func(Context) error { return v.HTTPError(http.StatusUnprocessableEntity, "short of money") },
			status:  http.StatusUnprocessableEntity, kept: true,
		},
		"not found": {
			handler: func(Context) error { return v.HTTPError(http.StatusNotFound, "no account") },
			status:  http.StatusNotFound, kept: true,
		},
		"a wrapped HTTPError": {
			handler: func(Context) error { return fmt.Errorf("withdraw: %w", v.HTTPError(http.StatusConflict, "busy")) },
		},
		"an HTTPError that is not kept": {
			handler: func(Context) error { return v.HTTPError(http.StatusTooManyRequests, "slow down") },
			status:  http.StatusTooManyRequests,
		},
		"a plain error": {
			handler: func(Context) error { return errShort },
			status:  http.StatusInternalServerError,
		},
		"an error after the answer": {
			handler: func(c Context) error { return errors.Join(c.JSON(http.StatusCreated, "done"), errShort) },
			status:  http.StatusCreated, kept: true,
		},
		"an error after an answer without a body": {
			handler: func(c Context) error { return errors.Join(c.NoContent(http.StatusAccepted), errShort) },
			status:  http.StatusAccepted, kept: true,
		},
		"an error after a half answer": {
			handler: func(c Context) error {
				_, err := v.Writer(c).Write([]byte("hal"))
				return errors.Join(err, v.HTTPError(http.StatusBadRequest, "no"))
			},
			status: http.StatusOK, kept: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bare := v.start(t, App[M]{Handler: test.handler})
			guarded := v.start(t, App[M]{Handler: test.handler, Route: []M{v.New(Once(t))}})

			want := Post(t, bare.Server, "1")
			if test.status != 0 && want.Status != test.status {
				t.Fatalf("without a guard the status is %d; want %d", want.Status, test.status)
			}
			for _, replay := range []bool{false, test.kept} {
				got := Post(t, guarded.Server, "1")
				if got.Status != want.Status || got.Body != want.Body || got.Header.Get("Content-Type") != want.Header.Get("Content-Type") || got.Replayed != replay {
					t.Errorf("got %+v, replayed %t; want %+v, replayed %t", got, got.Replayed, want, replay)
				}
			}
			guarded.expectRuns(t, map[bool]int32{true: 1, false: 2}[test.kept])
		})
	}
}

// testErrorHandlers has the application render errors itself.
func testErrorHandlers[M any](t *testing.T, v Version[M]) {
	for name, test := range map[string]struct {
		answer  string // of the handler, before its error
		handler func(c Context, err error, byDefault func())
		status  int
		body    string
		replay  bool
		calls   [2]int32 // of the error handler, after the first answer and after the second
	}{
		"careful": {
			handler: func(c Context, err error, _ func()) {
				if !v.Response(c).Committed {
					_ = c.String(http.StatusPaymentRequired, err.Error())
				}
			},
			status: http.StatusPaymentRequired, body: errShort.Error(), replay: true, calls: [2]int32{2, 2},
		},
		"careless, after an answer": {
			answer:  "done",
			handler: func(c Context, err error, _ func()) { _ = c.String(http.StatusPaymentRequired, err.Error()) },
			status:  http.StatusOK, body: "done", replay: true, calls: [2]int32{1, 1},
		},
		"careless, so that it answers twice": {
			handler: func(c Context, err error, _ func()) { _ = c.String(http.StatusPaymentRequired, err.Error()) },
			status:  http.StatusPaymentRequired, body: errShort.Error(), replay: true, calls: [2]int32{2, 2},
		},
		"around Echo's own": {
			handler: func(_ Context, _ error, byDefault func()) { byDefault() },
			status:  http.StatusInternalServerError, body: `{"message":"Internal Server Error"}`, calls: [2]int32{2, 4},
		},
		"silent, so that there is no answer to keep": {
			handler: func(Context, error, func()) {},
			status:  http.StatusOK, calls: [2]int32{2, 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			server := v.start(t, App[M]{
				Route: []M{v.New(Once(t))},
				Handler: func(c Context) error {
					if test.answer == "" {
						return errShort
					}
					return errors.Join(c.String(http.StatusOK, test.answer), errShort)
				},
				ErrorHandler: func(c Context, err error, byDefault func()) {
					calls.Add(1)
					test.handler(c, err, byDefault)
				},
			})
			for i, replay := range []bool{false, test.replay} {
				Post(t, server.Server, "1").expect(t, test.status, test.body, replay)
				if got := calls.Load(); got != test.calls[i] {
					t.Errorf("after answer %d the error handler was called %d times; want %d", i+1, got, test.calls[i])
				}
			}
		})
	}
}

// testOuterLayers looks at handlers' errors from outside.
func testOuterLayers[M any](t *testing.T, v Version[M]) {
	refuse := func(Context) error { return v.HTTPError(http.StatusUnprocessableEntity, "short of money") }
	const body = `{"message":"short of money"}`

	t.Run("they see the error and the response", func(t *testing.T) {
		t.Parallel()
		type sight struct {
			code     int
			response Response
		}
		seen := make(chan sight, 2)
		watch := v.Middleware(func(c Context, next func() error) error {
			err := next()
			seen <- sight{v.Code(err), v.Response(c)}
			return err
		})
		server := v.start(t, App[M]{Use: []M{watch}, Route: []M{v.New(Once(t))}, Handler: refuse})

		size := int64(len(Post(t, server.Server, "1").Body))
		want := sight{http.StatusUnprocessableEntity, Response{true, http.StatusUnprocessableEntity, size}}
		if got := await(t, "the first answer", seen); got != want {
			t.Errorf("first they see %+v; want %+v", got, want)
		}
		Post(t, server.Server, "1").expect(t, http.StatusUnprocessableEntity, body, true)
		want.code = 0
		if got := await(t, "the replay", seen); got != want {
			t.Errorf("with the replay they see %+v; want %+v", got, want)
		}
	})

	// A logger that calls the error handler itself, inside a Gzip that holds small answers back.
	for name, outer := range map[string][]M{
		"a logger that renders":             {v.Middleware(renders(v))},
		"a logger that renders inside Gzip": {v.Gzip(1024), v.Middleware(renders(v))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := v.start(t, App[M]{Use: outer, Group: []M{v.New(Once(t))}, Handler: refuse})
			for _, replay := range []bool{false, true} {
				reply := Post(t, server.Server, "1", withHeader("Accept-Encoding", "gzip"))
				reply.expect(t, http.StatusUnprocessableEntity, body, replay)
			}
		})
	}

	t.Run("a Serialize leaves errors to them", func(t *testing.T) {
		t.Parallel()
		translate := v.Middleware(func(c Context, next func() error) error {
			if err := next(); v.Code(err) != http.StatusUnprocessableEntity || v.Response(c).Committed {
				return fmt.Errorf("code %d, %+v", v.Code(err), v.Response(c))
			}
			return c.String(http.StatusTeapot, "translated")
		})
		server := v.start(t, App[M]{Use: []M{translate}, Route: []M{v.New(Account(t))}, Handler: refuse})
		Post(t, server.Server, "").expect(t, http.StatusTeapot, "translated", false)
	})
}

// renders is a logger as Echo's RequestLogger with HandleError.
func renders[M any](v Version[M]) Layer {
	return func(c Context, next func() error) error {
		err := next()
		if err != nil {
			v.Render(c, err)
		}
		return err
	}
}

var errLeft = errors.New("the client has left")

// testGivingUp has handlers stop because their context ends. That is no verdict on the request.
func testGivingUp[M any](t *testing.T, v Version[M]) {
	// These answers would be kept.
	told := func(c Context, err error, byDefault func()) {
		switch {
		case v.Response(c).Committed:
		case errors.Is(err, context.Canceled):
			_ = c.NoContent(http.StatusTeapot)
		case errors.Is(err, errLeft):
			_ = c.NoContent(http.StatusGone)
		default:
			byDefault()
		}
	}
	for name, test := range map[string]struct {
		outer, inner []M
		guard        M
		why          func(context.Context) error
		status       int
	}{
		"a deadline outside a Once": {
			outer: []M{v.ContextTimeout(time.Millisecond)}, guard: v.New(Once(t)),
			why: context.Context.Err, status: http.StatusServiceUnavailable,
		},
		"a deadline inside a Once": {
			inner: []M{v.ContextTimeout(time.Millisecond)}, guard: v.New(Once(t)),
			why: context.Context.Err, status: http.StatusServiceUnavailable,
		},
		"a deadline outside a Serialize": {
			outer: []M{v.ContextTimeout(time.Millisecond)}, guard: v.New(Account(t)),
			why: context.Context.Err, status: http.StatusServiceUnavailable,
		},
		"a deadline inside a Serialize": {
			inner: []M{v.ContextTimeout(time.Millisecond)}, guard: v.New(Account(t)),
			why: context.Context.Err, status: http.StatusServiceUnavailable,
		},
		"a client that leaves a Once": {
			outer: []M{v.Middleware(leaves)}, guard: v.New(Once(t)),
			why: context.Context.Err, status: http.StatusTeapot,
		},
		"a client that leaves a Once, and why": {
			outer: []M{v.Middleware(leaves)}, guard: v.New(Once(t)),
			why: context.Cause, status: http.StatusGone,
		},
		"a client that leaves a Serialize": {
			outer: []M{v.Middleware(leaves)}, guard: v.New(Account(t)),
			why: context.Context.Err, status: http.StatusTeapot,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := v.start(t, App[M]{
				Use:          test.outer,
				Route:        append([]M{test.guard}, test.inner...),
				ErrorHandler: told,
				Handler: func(c Context) error {
					if leave, ok := c.Get("leave").(context.CancelCauseFunc); ok {
						leave(errLeft)
					}
					<-c.Request().Context().Done()
					return fmt.Errorf("withdraw: %w", test.why(c.Request().Context()))
				},
			})
			for server.Runs.Load() < 2 { // a deadline may be over before the handler runs
				if reply := Post(t, server.Server, "1"); reply.Status != test.status || reply.Replayed {
					t.Fatalf("got %+v; want the status %d", reply, test.status)
				}
			}
		})
	}

	t.Run("the same error in time is a verdict", func(t *testing.T) {
		t.Parallel()
		server := v.start(t, App[M]{
			Route:        []M{v.New(Once(t))},
			ErrorHandler: told,
			Handler:      func(Context) error { return errors.Join(errShort, context.Canceled) },
		})
		Post(t, server.Server, "1").expect(t, http.StatusTeapot, "", false)
		Post(t, server.Server, "1").expect(t, http.StatusTeapot, "", true)
	})
}

// leaves lets the handler end the request's context, as net/http does when the client hangs up.
func leaves(c Context, next func() error) error {
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	defer cancel(nil)
	c.SetRequest(c.Request().WithContext(ctx))
	c.Set("leave", cancel)
	return next()
}
