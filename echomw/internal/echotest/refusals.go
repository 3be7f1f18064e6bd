package echotest

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
)

var errSecret = errors.New("dial tcp 10.0.0.7:6379: connection refused")

// refusing returns a guard that refuses every request with the outcome.
func refusing(t *testing.T, outcome dedupe.Outcome) *dedupe.Guard {
	t.Helper()
	return Once(t, dedupe.WithFingerprint(func(dedupe.Request) ([]byte, error) {
		return nil, &dedupe.Refusal{Outcome: outcome, Cause: errSecret}
	}))
}

// refusals are the outcomes that are told to clients.
func refusals() (found []dedupe.Outcome) {
	for _, outcome := range dedupe.Outcomes() {
		if httpmw.Status(outcome) != 0 {
			found = append(found, outcome)
		}
	}
	return found
}

// testRefusals compares a refusal, as each kind of error handler renders it, with httpmw's.
func testRefusals[M any](t *testing.T, v Version[M]) {
	const problem, text = "application/problem+json", "text/plain; charset=UTF-8"
	for name, test := range map[string]struct {
		handler     func(c Context, err error, byDefault func())
		refuse      func(http.ResponseWriter, *http.Request, *dedupe.Refusal)
		contentType string
		problem     bool
		unseen      bool // by outer middleware
	}{
		"Echo's error handler": {contentType: problem, problem: true},
		"one that wraps Echo's": {
			handler:     func(_ Context, _ error, byDefault func()) { byDefault() },
			contentType: map[bool]string{true: problem, false: "application/json"}[v.RendersProblems],
			problem:     v.RendersProblems,
		},
		"the application's own": {
			handler: func(c Context, err error, _ func()) {
				var refusal *dedupe.Refusal
				if !errors.As(err, &refusal) || !errors.Is(err, refusal.Outcome.Err()) {
					_ = c.String(http.StatusTeapot, "not a refusal")
					return
				}
				_ = c.String(v.Code(err), refusal.Outcome.String())
			},
			contentType: text,
		},
		"Refuse": {
			refuse:      httpmw.WriteProblem,
			contentType: problem, problem: true, unseen: true,
		},
	} {
		for _, outcome := range refusals() {
			t.Run(name+"/"+outcome.String(), func(t *testing.T) {
				t.Parallel()
				seen := make(chan error, 1)
				watch := v.Middleware(func(_ Context, next func() error) error {
					err := next()
					seen <- err
					return err
				})
				guard := refusing(t, outcome)
				middleware, err := v.ToMiddleware(Config{Guards: []*dedupe.Guard{guard}, HTTP: httpmw.Config{Refuse: test.refuse}})
				if err != nil {
					t.Fatal(err)
				}
				server := v.start(t, App[M]{Use: []M{watch}, Route: []M{middleware}, ErrorHandler: test.handler})
				model := Start(t, httpmw.New(guard)(http.NotFoundHandler()))

				got, want := Post(t, server.Server, "1"), Post(t, model, "1")
				if got.Status != want.Status || got.Header.Get("Content-Type") != test.contentType {
					t.Errorf("got %d as %q; want %d as %q", got.Status, got.Header.Get("Content-Type"), want.Status, test.contentType)
				}
				for _, name := range []string{"Retry-After", "Cache-Control"} {
					if got.Header.Get(name) != want.Header.Get(name) {
						t.Errorf("%s is %q; want %q", name, got.Header.Get(name), want.Header.Get(name))
					}
				}
				switch {
				case test.problem:
					got.expect(t, want.Status, trimmed(want.Body), false)
				case test.contentType == text:
					got.expect(t, want.Status, outcome.String(), false)
				default:
					got.expect(t, want.Status, message(t, outcome.Text()), false)
				}
				switch err := await(t, "the refusal", seen); {
				case test.unseen != (err == nil):
					t.Errorf("outer middleware sees %v", err)
				case err != nil && (!errors.Is(err, outcome.Err()) || v.Code(err) != want.Status):
					t.Errorf("outer middleware sees %v with the code %d", err, v.Code(err))
				}
				server.expectRuns(t, 0)
			})
		}
	}
}

func message(t *testing.T, text string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"message": text})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// testRefusalLayers has refusals pass through other middleware.
func testRefusalLayers[M any](t *testing.T, v Version[M]) {
	t.Run("a layer translates", func(t *testing.T) {
		t.Parallel()
		translate := v.Middleware(func(c Context, next func() error) error {
			if err := next(); !errors.Is(err, dedupe.ErrConflict) || v.Response(c).Committed {
				return err
			}
			return c.JSON(http.StatusLocked, "translated")
		})
		server := v.start(t, App[M]{Use: []M{translate}, Route: []M{v.New(refusing(t, dedupe.Locked))}})
		reply := Post(t, server.Server, "1")
		reply.expect(t, http.StatusLocked, `"translated"`, false)
		if got := reply.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("the translation is called %q", got)
		}
	})

	t.Run("the detail is told", func(t *testing.T) {
		t.Parallel()
		for name, handler := range map[string]func(Context, error, func()){
			"Echo's error handler":  nil,
			"one that wraps Echo's": func(_ Context, _ error, byDefault func()) { byDefault() },
		} {
			server := v.start(t, App[M]{Route: []M{v.New(Once(t))}, ErrorHandler: handler})
			reply := Post(t, server.Server, `"unfinished`)
			var told struct{ Detail, Message string }
			if err := json.Unmarshal([]byte(reply.Body), &told); err != nil || reply.Status != http.StatusBadRequest || told.Detail+told.Message == "" {
				t.Errorf("%s: %+v, %v", name, reply, err)
			}
		}
	})

	t.Run("a guard inside another middleware's recording", func(t *testing.T) {
		t.Parallel()
		account := Account(t)
		release, held := make(chan struct{}), make(chan struct{})
		server := v.start(t, App[M]{
			Group: []M{v.New(Once(t))},
			Route: []M{v.New(account)},
			Handler: func(c Context) error {
				if c.Request().Header.Get("Hold") != "" {
					close(held)
					<-release
				}
				return c.JSON(http.StatusOK, "done")
			},
		})
		first := PostLater(t, server.Server, "1", withHeader("Hold", "yes"))
		await(t, "the first request", held)

		reply := Post(t, server.Server, "2")
		if reply.Status != http.StatusConflict || reply.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("the second request gets %+v", reply)
		}
		var problem httpmw.Problem
		if err := json.Unmarshal([]byte(reply.Body), &problem); err != nil || problem.Title != dedupe.Locked.Text() {
			t.Errorf("the second request gets %q: %v", reply.Body, err)
		}
		close(release)
		await(t, "the first answer", first).expect(t, http.StatusOK, `"done"`, false)
		Post(t, server.Server, "2").expect(t, http.StatusOK, `"done"`, false)
		Post(t, server.Server, "2").expect(t, http.StatusOK, `"done"`, true)
	})

	t.Run("repeats of a request in flight", func(t *testing.T) {
		t.Parallel()
		release, held := make(chan struct{}), make(chan struct{})
		server := v.start(t, App[M]{
			Route: []M{v.New(Once(t, dedupe.WithWait(time.Minute)))},
			Handler: func(Context) error {
				close(held)
				<-release
				return v.HTTPError(http.StatusUnprocessableEntity, "short of money")
			},
		})
		first := PostLater(t, server.Server, "1")
		await(t, "the first request", held)
		second := PostLater(t, server.Server, "1")
		Post(t, server.Server, "1", withBody("another", true)).expect(t, http.StatusUnprocessableEntity,
			trimmed(problemOf(t, dedupe.KeyReused)), false)
		close(release)
		await(t, "the first answer", first).expect(t, http.StatusUnprocessableEntity, message(t, "short of money"), false)
		await(t, "the second answer", second).expect(t, http.StatusUnprocessableEntity, message(t, "short of money"), true)
		server.expectRuns(t, 1)
	})
}

// problemOf returns httpmw's problem.
func problemOf(t *testing.T, outcome dedupe.Outcome) string {
	t.Helper()
	body, err := json.Marshal(httpmw.NewProblem(&dedupe.Refusal{Outcome: outcome}))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
