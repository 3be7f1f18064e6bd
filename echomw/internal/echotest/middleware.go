package echotest

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// testCompression has Echo's Gzip on both sides of a Once: outside, it compresses each answer for
// the client it is sent to; inside, what it made of the first is the record.
func testCompression[M any](t *testing.T, v Version[M]) {
	long := strings.Repeat("ten bytes ", 300)
	for name, test := range map[string]struct {
		outer, inner M
		then         []bool // compressed, for clients that took it first, do not, and do
	}{
		"outside":            {outer: v.Gzip(0), then: []bool{true, false, true}},
		"outside, in pieces": {outer: v.Gzip(1024), then: []bool{true, false, true}},
		"inside":             {inner: v.Gzip(0), then: []bool{true, true, true}},
		"inside, in pieces":  {inner: v.Gzip(1024), then: []bool{true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := App[M]{Route: []M{v.New(Once(t))}, Handler: func(c Context) error { return c.String(http.StatusCreated, long) }}
			if strings.HasPrefix(name, "outside") {
				app.Use = []M{test.outer}
			} else {
				app.Route = append(app.Route, test.inner)
			}
			server := v.start(t, app)
			for i, accepted := range []string{"gzip", "identity", "gzip"} {
				reply := Post(t, server.Server, "1", withHeader("Accept-Encoding", accepted))
				compressed := reply.Header.Get("Content-Encoding") == "gzip"
				if compressed {
					reply.Body = unzip(t, reply.Body)
				}
				reply.expect(t, http.StatusCreated, long, i > 0)
				if compressed != test.then[i] {
					t.Errorf("answer %d is compressed: %t", i+1, compressed)
				}
				if got := reply.Header.Values("Vary"); len(got) != 1 || got[0] != "Accept-Encoding" {
					t.Errorf("answer %d has Vary %q", i+1, got)
				}
			}
		})
	}
}

func unzip(t *testing.T, body string) string {
	t.Helper()
	reader, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// testEchoMiddleware has middleware that speaks in headers: outside a Once, for each client;
// inside, in the first answer only, because those headers belong to the exchange.
func testEchoMiddleware[M any](t *testing.T, v Version[M]) {
	for name, test := range map[string]struct {
		middleware func() M
		header     string
		differs    bool
	}{
		"CORS":      {v.CORS, "Access-Control-Allow-Origin", false},
		"RequestID": {v.RequestID, "X-Request-Id", true},
	} {
		t.Run(name+" outside", func(t *testing.T) {
			t.Parallel()
			server := v.start(t, App[M]{Use: []M{test.middleware()}, Route: []M{v.New(Once(t))}, Handler: done})
			first := Post(t, server.Server, "1", withHeader("Origin", "https://bank.example"))
			replay := Post(t, server.Server, "1", withHeader("Origin", "https://bank.example"))
			refusal := Post(t, server.Server, "", withHeader("Origin", "https://bank.example"))
			replay.expect(t, http.StatusOK, `"done"`, true)
			seen := map[string]bool{}
			for _, reply := range []Reply{first, replay, refusal} {
				seen[reply.Header.Get(test.header)] = true
			}
			if seen[""] || (len(seen) == 3) != test.differs {
				t.Errorf("%s is %v", test.header, seen)
			}
		})
		t.Run(name+" inside", func(t *testing.T) {
			t.Parallel()
			server := v.start(t, App[M]{Group: []M{v.New(Once(t))}, Route: []M{test.middleware()}, Handler: done})
			first := Post(t, server.Server, "1", withHeader("Origin", "https://bank.example"))
			replay := Post(t, server.Server, "1", withHeader("Origin", "https://bank.example"))
			replay.expect(t, http.StatusOK, `"done"`, true)
			if first.Header.Get(test.header) == "" || replay.Header.Get(test.header) != "" {
				t.Errorf("%s is %q at first and %q then", test.header, first.Header.Get(test.header), replay.Header.Get(test.header))
			}
		})
	}
}

// testBodyLimit has Echo's BodyLimit on both sides.
func testBodyLimit[M any](t *testing.T, v Version[M]) {
	const limit = 64
	large := strings.Repeat("x", 10*limit)
	read := func(c Context) error {
		if _, err := io.ReadAll(c.Request().Body); err != nil {
			return err
		}
		return done(c)
	}
	for _, announced := range []bool{true, false} {
		name := map[bool]string{true: "announced", false: "in chunks"}[announced]
		t.Run("outside, "+name, func(t *testing.T) {
			t.Parallel()
			seen := make(chan error, 1)
			watch := v.Middleware(func(_ Context, next func() error) error {
				err := next()
				seen <- err
				return err
			})
			server := v.start(t, App[M]{Use: []M{watch, v.BodyLimit(limit)}, Route: []M{v.New(Once(t))}, Handler: read})
			if reply := Post(t, server.Server, "1", withBody(large, announced)); reply.Status != http.StatusRequestEntityTooLarge {
				t.Errorf("got %+v", reply)
			}
			if err := await(t, "the refusal", seen); !announced && !errors.Is(err, dedupe.ErrPayloadTooLarge) {
				t.Errorf("outer middleware sees %v", err)
			}
			server.expectRuns(t, 0)
			Post(t, server.Server, "1").expect(t, http.StatusOK, `"done"`, false)
		})
		t.Run("inside, "+name, func(t *testing.T) {
			t.Parallel()
			server := v.start(t, App[M]{Group: []M{v.New(Once(t))}, Route: []M{v.BodyLimit(limit)}, Handler: read})
			for _, replay := range []bool{false, true} {
				if reply := Post(t, server.Server, "1", withBody(large, announced)); reply.Status != http.StatusRequestEntityTooLarge || reply.Replayed != replay {
					t.Errorf("got %+v, replayed %t", reply, reply.Replayed)
				}
			}
		})
	}
}

// testPanics has Echo's Recover on both sides, and none.
func testPanics[M any](t *testing.T, v Version[M]) {
	const body = `{"message":"Internal Server Error"}`
	for name, guard := range map[string]func() M{
		"Once":      func() M { return v.New(Once(t)) },
		"Serialize": func() M { return v.New(Account(t)) },
	} {
		for place, app := range map[string]func() App[M]{
			"outside": func() App[M] { return App[M]{Use: []M{v.Recover()}, Route: []M{guard()}} },
			"inside":  func() App[M] { return App[M]{Group: []M{guard()}, Route: []M{v.Recover()}} },
			"nowhere": func() App[M] { return App[M]{Route: []M{guard()}} },
		} {
			t.Run("under "+name+", Recover "+place, func(t *testing.T) {
				t.Parallel()
				app := app()
				app.Handler = func(c Context) error {
					c.Set("half", c.Param("id"))
					if _, err := io.WriteString(v.Writer(c), ""); err != nil {
						return err
					}
					panic("as agreed")
				}
				if place != "nowhere" {
					app.Handler = func(Context) error { panic("as agreed") }
				}
				server := v.start(t, app)
				for range 2 { // the second one runs: the first has let go
					reply, err := Send(t, server.Server, "1")
					if place == "nowhere" {
						if err == nil {
							t.Errorf("got %+v for a connection that should have broken", reply)
						}
						continue
					}
					reply.expect(t, http.StatusInternalServerError, body, false)
				}
				server.expectRuns(t, 2)
			})
		}
	}

	t.Run("half an answer before it is not sent", func(t *testing.T) {
		t.Parallel()
		server := v.start(t, App[M]{Use: []M{v.Recover()}, Route: []M{v.New(Once(t))}, Handler: func(c Context) error {
			if err := c.String(http.StatusOK, "half"); err != nil {
				return err
			}
			panic("as agreed")
		}})
		reply := Post(t, server.Server, "1")
		reply.expect(t, http.StatusInternalServerError, body, false)
		server.expectRuns(t, 1)
	})

	t.Run("http.ErrAbortHandler passes through", func(t *testing.T) {
		t.Parallel()
		server := v.start(t, App[M]{Use: []M{v.Recover()}, Route: []M{v.New(Once(t))}, Handler: func(Context) error {
			panic(http.ErrAbortHandler)
		}})
		if reply, err := Send(t, server.Server, "1"); err == nil {
			t.Errorf("got %+v", reply)
		}
	})
}

// testCrowds has many clients at once, over Echo's pool of contexts.
func testCrowds[M any](t *testing.T, v Version[M]) {
	const crowd = 100
	t.Run("one request a hundred times", func(t *testing.T) {
		t.Parallel()
		server := v.start(t, App[M]{
			Route:   []M{v.New(Once(t, dedupe.WithWait(patience)))},
			Handler: func(Context) error { return v.HTTPError(http.StatusUnprocessableEntity, "no") },
		})
		replies := make([]<-chan Reply, crowd)
		for i := range replies {
			replies[i] = PostLater(t, server.Server, "1")
		}
		firsts := 0
		for _, reply := range replies {
			reply := await(t, "an answer", reply)
			if !reply.Replayed {
				firsts++
			}
			reply.expect(t, http.StatusUnprocessableEntity, `{"message":"no"}`, reply.Replayed)
		}
		if firsts != 1 {
			t.Errorf("%d answers are not replays", firsts)
		}
		server.expectRuns(t, 1)
	})

	t.Run("a hundred withdrawals from one account", func(t *testing.T) {
		t.Parallel()
		balance := crowd // unsynchronized: that is the guard's business
		server := v.start(t, App[M]{
			Route: []M{v.New(Once(t), Account(t, dedupe.WithWait(patience)))},
			Handler: func(c Context) error {
				balance--
				return c.NoContent(http.StatusNoContent)
			},
		})
		replies := make([]<-chan Reply, crowd)
		for i := range replies {
			replies[i] = PostLater(t, server.Server, strings.Repeat("k", i+1))
		}
		for _, reply := range replies {
			await(t, "an answer", reply).expect(t, http.StatusNoContent, "", false)
		}
		if balance != 0 {
			t.Errorf("the balance is %d", balance)
		}
	})
}

// testWrapMiddleware shows what echomw is for: what httpmw does in Echo's own wrapping.
func testWrapMiddleware[M any](t *testing.T, v Version[M]) {
	refuse := func(Context) error { return v.HTTPError(http.StatusUnprocessableEntity, "short of money") }

	t.Run("wrapped, a client is told that a failure succeeded", func(t *testing.T) {
		t.Parallel()
		server := v.start(t, App[M]{Route: []M{v.Wrap(httpmw.New(Once(t)))}, Handler: refuse})
		Post(t, server.Server, "1").expect(t, http.StatusOK, "", false)
		Post(t, server.Server, "1").expect(t, http.StatusOK, "", true)
	})
	t.Run("echomw tells it of the failure", func(t *testing.T) {
		t.Parallel()
		server := v.start(t, App[M]{Route: []M{v.New(Once(t))}, Handler: refuse})
		Post(t, server.Server, "1").expect(t, http.StatusUnprocessableEntity, `{"message":"short of money"}`, false)
		Post(t, server.Server, "1").expect(t, http.StatusUnprocessableEntity, `{"message":"short of money"}`, true)
	})
	t.Run("wrapped, what middleware has stored is not found", func(t *testing.T) {
		t.Parallel()
		once, err := dedupe.Once(memstore.New(), keyfuncs.Value("user"), keyfuncs.Header(keyHeader))
		if err != nil {
			t.Fatal(err)
		}
		login := v.Middleware(func(c Context, next func() error) error {
			c.Set("user", "alice")
			return next()
		})
		for status, middleware := range map[int]M{http.StatusBadRequest: v.Wrap(httpmw.New(once)), http.StatusOK: v.New(once)} {
			server := v.start(t, App[M]{Use: []M{login}, Route: []M{middleware}, Handler: done})
			if reply := Post(t, server.Server, "1"); reply.Status != status {
				t.Errorf("got %+v; want the status %d", reply, status)
			}
		}
	})
}
