package echotest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

func done(c Context) error { return c.JSON(http.StatusOK, "done") }

func testConfiguration[M any](t *testing.T, v Version[M]) {
	t.Run("every problem is named", func(t *testing.T) {
		t.Parallel()
		_, err := v.ToMiddleware(Config{
			Guards: []*dedupe.Guard{Once(t), nil},
			HTTP:   httpmw.Config{MaxBody: -1, KeepHeaders: []string{"Set-Cookie"}},
		})
		for _, problem := range []string{"guard 2 is nil", "MaxBody is -1", "Set-Cookie"} {
			if err == nil || !strings.Contains(err.Error(), problem) {
				t.Errorf("%v does not name %q", err, problem)
			}
		}
	})
	t.Run("New panics on a nil guard", func(t *testing.T) {
		t.Parallel()
		defer func() {
			if recover() == nil {
				t.Error("it did not panic")
			}
		}()
		v.New(nil)
	})
	t.Run("without guards nothing happens", func(t *testing.T) {
		t.Parallel()
		server := v.start(t, App[M]{Route: []M{v.New()}, Handler: done})
		Post(t, server.Server, "").expect(t, http.StatusOK, `"done"`, false)
	})
	t.Run("the Skipper skips", func(t *testing.T) {
		t.Parallel()
		middleware, err := v.ToMiddleware(Config{
			Guards:  []*dedupe.Guard{Once(t)},
			Skipper: func(c Context) bool { return c.Param("id") == "8" },
		})
		if err != nil {
			t.Fatal(err)
		}
		server := v.start(t, App[M]{Route: []M{middleware}, Handler: done})
		for range 2 {
			Post(t, server.Server, "1", withPath("accounts/8/withdraw")).expect(t, http.StatusOK, `"done"`, false)
		}
		if reply := Post(t, server.Server, ""); reply.Status != http.StatusBadRequest {
			t.Errorf("account 7 is skipped too: %+v", reply)
		}
	})
	t.Run("limits and what is kept", func(t *testing.T) {
		t.Parallel()
		middleware, err := v.ToMiddleware(Config{Guards: []*dedupe.Guard{Once(t)}, HTTP: httpmw.Config{
			MaxBody: 20,
			Keep:    func(status int, _ http.Header) bool { return status == http.StatusTeapot },
		}})
		if err != nil {
			t.Fatal(err)
		}
		server := v.start(t, App[M]{Route: []M{middleware}, Handler: func(c Context) error { return c.NoContent(http.StatusTeapot) }})
		Post(t, server.Server, "1").expect(t, http.StatusTeapot, "", false)
		Post(t, server.Server, "1").expect(t, http.StatusTeapot, "", true)
		if reply := Post(t, server.Server, "2", withBody(strings.Repeat("x", 21), true)); reply.Status != http.StatusRequestEntityTooLarge {
			t.Errorf("a large body gets %+v", reply)
		}
	})
}

// testPlaces puts a guard into each of Echo's places.
func testPlaces[M any](t *testing.T, v Version[M]) {
	const route, path = "POST /accounts/:id/withdraw", "POST /accounts/7/withdraw"
	for name, test := range map[string]struct {
		app       func(M) App[M]
		operation string
		param     string
	}{
		"Route": {func(m M) App[M] { return App[M]{Route: []M{m}} }, route, "7"},
		"Group": {func(m M) App[M] { return App[M]{Group: []M{m}} }, route, "7"},
		"Use":   {func(m M) App[M] { return App[M]{Use: []M{m}} }, route, "7"},
		"Pre":   {func(m M) App[M] { return App[M]{Pre: []M{m}} }, path, ""},
		"twice": {func(m M) App[M] { return App[M]{Use: []M{m}, Group: []M{m}, Route: []M{m}} }, route, "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operations, params := make(chan string, 8), make(chan string, 8)
			guard, err := dedupe.Once(memstore.New(), keyfuncs.Anyone,
				func(r dedupe.Request) (string, error) {
					param, _ := r.Param("id")
					params <- param
					return keyfuncs.Header(keyHeader)(r)
				},
				dedupe.WithObserver(func(e dedupe.Event) {
					if e.Kind == dedupe.EventDecided {
						operations <- e.Operation
					}
				}))
			if err != nil {
				t.Fatal(err)
			}
			app := test.app(v.New(guard))
			app.Handler = func(Context) error { return v.HTTPError(http.StatusUnprocessableEntity, "no") }
			server := v.start(t, app)
			for _, replay := range []bool{false, true} {
				Post(t, server.Server, "1").expect(t, http.StatusUnprocessableEntity, `{"message":"no"}`, replay)
				if got := await(t, "a decision", operations); got != test.operation {
					t.Errorf("the operation is %q; want %q", got, test.operation)
				}
				if got := await(t, "a key", params); got != test.param {
					t.Errorf("the parameter is %q; want %q", got, test.param)
				}
			}
			if len(operations) != 0 {
				t.Errorf("the guard decided once more: %q", <-operations)
			}
		})
	}
}

type contextKey struct{}

// testRequests looks at what key functions and handlers see of a request.
func testRequests[M any](t *testing.T, v Version[M]) {
	t.Run("key functions", func(t *testing.T) {
		t.Parallel()
		prepare := v.Middleware(func(c Context, next func() error) error {
			ctx := context.WithValue(c.Request().Context(), contextKey{}, "from the context")
			ctx = context.WithValue(ctx, "both", "from the context") //nolint:staticcheck,revive // a string is what is tested
			c.SetRequest(c.Request().WithContext(ctx))
			c.Set("stored", "from the store")
			c.Set("both", "from the store")
			return next()
		})
		for name, test := range map[string]struct {
			key     dedupe.KeyFunc
			path    string
			want    string
			changed httpmw.Config
		}{
			"Param":                   {key: keyfuncs.Param("id"), want: "7"},
			"Param, escaped":          {key: keyfuncs.Param("id"), path: "accounts/%37/withdraw", want: "7"},
			"Param, escaped for good": {key: keyfuncs.Param("id"), path: "accounts/a%2Fb/withdraw", want: "a/b"},
			"Param of another name":   {key: keyfuncs.Param("ID")},
			"Param of one's own":      {key: keyfuncs.Param("id"), want: "own id", changed: httpmw.Config{Param: func(_ *http.Request, name string) string { return "own " + name }}},
			"Value, stored":           {key: keyfuncs.Value("stored"), want: "from the store"},
			"Value, in the context":   {key: keyfuncs.Value(contextKey{}), want: "from the context"},
			"Value, in both":          {key: keyfuncs.Value("both"), want: "from the store"},
			"Value, nowhere":          {key: keyfuncs.Value("nowhere")},
			"Operation":               {key: keyfuncs.Operation, want: "POST /accounts/:id/withdraw"},
			"Operation of one's own":  {key: keyfuncs.Operation, want: "own", changed: httpmw.Config{Operation: func(*http.Request) string { return "own" }}},
			"Field":                   {key: keyfuncs.Field("amount"), want: "10"},
			"Header":                  {key: keyfuncs.Header(keyHeader), want: "1"},
			"Context": {key: keyfuncs.Context(func(ctx context.Context) (string, error) {
				value, _ := ctx.Value(contextKey{}).(string)
				return value, nil
			}), want: "from the context"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				keys := make(chan string, 1)
				guard, err := dedupe.Serialize(memstore.New(), "account", func(r dedupe.Request) (string, error) {
					key, err := test.key(r)
					keys <- key
					return key, err
				}, dedupe.WithOptionalKey())
				if err != nil {
					t.Fatal(err)
				}
				middleware, err := v.ToMiddleware(Config{Guards: []*dedupe.Guard{guard}, HTTP: test.changed})
				if err != nil {
					t.Fatal(err)
				}
				server := v.start(t, App[M]{Use: []M{prepare}, Route: []M{middleware}, Handler: done})
				Post(t, server.Server, "1", func(r *http.Request) {
					if test.path != "" {
						withPath(test.path)(r)
					}
				}).expect(t, http.StatusOK, `"done"`, false)
				if got := await(t, "a key", keys); got != test.want {
					t.Errorf("got the key %q; want %q", got, test.want)
				}
			})
		}
	})

	t.Run("the handler has the leases, and what is around it its own again", func(t *testing.T) {
		t.Parallel()
		once, account := Once(t), Account(t)
		var during, after error
		surround := v.Middleware(func(c Context, next func() error) error {
			request, writer, beneath := c.Request(), v.Writer(c), v.Beneath(c)
			defer func() {
				_ = recover()
				switch {
				case c.Request() != request:
					after = errors.New("another request")
				case v.Writer(c) != writer || v.Beneath(c) != beneath:
					after = errors.New("another response")
				default:
					after = nil
				}
			}()
			return next()
		})
		server := v.start(t, App[M]{Use: []M{surround}, Route: []M{v.New(once, account)}, Handler: func(c Context) error {
			during = nil
			for _, guard := range []*dedupe.Guard{once, account} {
				if lease, found := guard.Lease(c.Request().Context()); !found || lease.Fence() == 0 {
					during = errors.New("no lease of " + guard.Name())
				}
			}
			if c.Param("id") == "8" {
				panic("as agreed")
			}
			return done(c)
		}})
		for _, path := range []string{"accounts/7/withdraw", "accounts/8/withdraw"} {
			if reply := Post(t, server.Server, path, withPath(path)); reply.Status != http.StatusOK || during != nil || after != nil {
				t.Errorf("%s: %+v; the handler sees %v; after it there is %v", path, reply, during, after)
			}
		}
	})
}
