package httpmw_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

func TestNewPanicsOnANilGuard(t *testing.T) {
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "guard 2 is nil") || !strings.Contains(got, "error") {
			t.Errorf("panic %q", got)
		}
	}()
	httpmw.New(newOnce(t, memstore.New()), nil)
}

// Every bad field is named, with its value, at once.
func TestConfigErrors(t *testing.T) {
	bad := httpmw.Config{
		MaxBody:     -1,
		MaxAnswer:   -2,
		KeepHeaders: []string{"X-Fine", "set-cookie"},
	}
	_, err := bad.Middleware(nil, newOnce(t, memstore.New()), nil)
	for _, part := range []string{"MaxBody is -1", "MaxAnswer is -2", `KeepHeaders has "set-cookie"`, "guard 1 is nil", "guard 3 is nil"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, which does not say %q", err, part)
		}
	}
	if err != nil && (strings.Contains(err.Error(), "X-Fine") || strings.Contains(err.Error(), "guard 2")) {
		t.Errorf("got %v, which names what is right", err)
	}

	const bound = 1 << 30
	for name, test := range map[string]struct {
		config httpmw.Config
		fine   bool
	}{
		"zero value":        {httpmw.Config{}, true},
		"least":             {httpmw.Config{MaxBody: 1, MaxAnswer: 1}, true},
		"most":              {httpmw.Config{MaxBody: bound, MaxAnswer: bound}, true},
		"body over most":    {httpmw.Config{MaxBody: bound + 1}, false},
		"answer over most":  {httpmw.Config{MaxAnswer: bound + 1}, false},
		"unlimited body":    {httpmw.Config{MaxBody: math.MaxInt64}, false},
		"unlimited answer":  {httpmw.Config{MaxAnswer: math.MaxInt}, false},
		"every header kept": {httpmw.Config{KeepHeaders: httpmw.DefaultKeepHeaders()}, true},
	} {
		if _, err := test.config.Middleware(); (err == nil) != test.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeepHeadersThatAreRefused(t *testing.T) {
	for _, name := range []string{
		"Set-Cookie", "SET-COOKIE", "Set-Cookie2", "Authorization", "Proxy-Authorization", "Authentication-Info",
		"Proxy-Authentication-Info", "WWW-Authenticate", "Proxy-Authenticate", "Connection", "Keep-Alive",
		"Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Date", "Content-Length", "Age",
		"Idempotent-Replayed", "", " ", "X-Fine ", " X-Fine", "X Fine", "X:Fine", "X-F\u00efne", "Trailer:X", "X\r\n",
	} {
		config := httpmw.Config{KeepHeaders: []string{name}}
		if _, err := config.Middleware(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

// What is changed after Middleware was called does not change the middleware.
func TestMiddlewareKeepsItsArguments(t *testing.T) {
	guards := []*dedupe.Guard{newOnce(t, memstore.New())}
	middleware, err := httpmw.Config{}.Middleware(guards...)
	if err != nil {
		t.Fatal(err)
	}
	guards[0] = nil
	record(middleware.Wrap(http.HandlerFunc(echo)), newRecorded("k", "")).check(t, http.StatusOK, "", false)
}

func TestNoGuards(t *testing.T) {
	record(httpmw.New()(http.HandlerFunc(echo)), newRecorded("", "body")).check(t, http.StatusOK, "body", false)
}

// Serve writes nothing itself when a guard turns the request away, and nil says it was answered.
func TestServe(t *testing.T) {
	middleware, err := httpmw.Config{}.Middleware(newOnce(t, memstore.New()))
	if err != nil {
		t.Fatal(err)
	}
	var errs []error
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		errs = append(errs, middleware.Serve(w, r, numbered(http.StatusCreated)))
	})
	record(handler, newRecorded("k", "")).check(t, http.StatusCreated, "run 1", false)
	record(handler, newRecorded("k", "")).check(t, http.StatusCreated, "run 1", true)
	if got := record(handler, newRecorded("k", "other")); got.body != "" || len(got.header) > 0 {
		t.Errorf("got %v %q", got.header, got.body)
	}
	if errs[0] != nil || errs[1] != nil {
		t.Errorf("got %v", errs)
	}
	refusal, ok := errs[2].(*dedupe.Refusal)
	if !ok || refusal.Outcome != dedupe.KeyReused {
		t.Errorf("got %v", errs[2])
	}
}

// account is a Serialize on the account that a header names, so that requests with one payload can
// meet there.
func account(t *testing.T, store dedupe.Store) *dedupe.Guard {
	return newSerialize(t, store, keyfuncs.Header("Account"))
}

func onAccount(key, number string) *http.Request {
	r := newRecorded(key, "")
	r.Header.Set("Account", number)
	return r
}

// With Once outside and Serialize inside, a repeat is replayed even while the account is busy, and
// a request that finds it busy keeps no claim on its key.
func TestOnceAroundSerialize(t *testing.T) {
	store := memstore.New()
	started, proceed := make(chan struct{}), make(chan struct{})
	var runs atomic.Int32
	handler := wrap(t, httpmw.Config{}, func(w http.ResponseWriter, r *http.Request) {
		number := runs.Add(1)
		if r.Header.Get(keyHeader) == "slow" {
			started <- struct{}{}
			<-proceed
		}
		_, _ = fmt.Fprintf(w, "run %d", number)
	}, newOnce(t, store), account(t, store))

	record(handler, onAccount("first", "7")).check(t, http.StatusOK, "run 1", false)
	slow := make(chan reply)
	go func() { slow <- record(handler, onAccount("slow", "7")) }()
	receive(t, started, "the slow request")

	record(handler, onAccount("first", "7")).check(t, http.StatusOK, "run 1", true)
	record(handler, onAccount("slow", "7")).checkRefused(t, dedupe.InFlight)
	record(handler, onAccount("third", "7")).checkRefused(t, dedupe.Locked)
	record(handler, onAccount("third", "7")).checkRefused(t, dedupe.Locked) // and not in flight
	record(handler, onAccount("fourth", "8")).check(t, http.StatusOK, "run 3", false)
	close(proceed)
	receive(t, slow, "the slow answer").check(t, http.StatusOK, "run 2", false)
	record(handler, onAccount("third", "7")).check(t, http.StatusOK, "run 4", false)
	record(handler, onAccount("third", "7")).check(t, http.StatusOK, "run 4", true)
}

// The other way round a repeat needs the account as well.
func TestSerializeAroundOnce(t *testing.T) {
	store := memstore.New()
	handler := wrap(t, httpmw.Config{}, numbered(http.StatusOK), account(t, store), newOnce(t, store))
	record(handler, onAccount("k", "7")).check(t, http.StatusOK, "run 1", false)
	record(handler, onAccount("k", "7")).check(t, http.StatusOK, "run 1", true)
}

// A guard that is both on a group and on a route holds once.
func TestGuardOnGroupAndRoute(t *testing.T) {
	store := memstore.New()
	for name, guards := range map[string][]*dedupe.Guard{
		"once":      {newOnce(t, store)},
		"serialize": {account(t, store)},
		"both":      {newOnce(t, store, dedupe.WithOperation("both")), account(t, store)},
	} {
		t.Run(name, func(t *testing.T) {
			handler := httpmw.New(guards...)(httpmw.New(guards...)(numbered(http.StatusOK)))
			record(handler, onAccount(name, "7")).check(t, http.StatusOK, "run 1", false)
			repeat := record(handler, onAccount(name, "7"))
			if name == "serialize" {
				repeat.check(t, http.StatusOK, "run 2", false)
			} else {
				repeat.check(t, http.StatusOK, "run 1", true)
			}
		})
	}
}

// A replay by an inner Once is the outer one's first answer.
func TestOnceAroundOnce(t *testing.T) {
	inner := newOnce(t, memstore.New())
	handlers := map[string]func(outer *dedupe.Guard, handler http.Handler) http.Handler{
		"one": func(outer *dedupe.Guard, h http.Handler) http.Handler { return httpmw.New(outer, inner)(h) },
		"two": func(outer *dedupe.Guard, h http.Handler) http.Handler { return httpmw.New(outer)(httpmw.New(inner)(h)) },
	}
	for name, compose := range handlers {
		t.Run(name, func(t *testing.T) {
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/orders/1")
				w.WriteHeader(http.StatusCreated)
				write(w, name)
			})
			send := func(outer *dedupe.Guard, replayed bool) {
				t.Helper()
				r := newRecorded(name, "")
				r.Header.Set("Outer", "o")
				got := record(compose(outer, handler), r)
				got.check(t, http.StatusCreated, name, replayed)
				if got.header.Get("Location") != "/orders/1" {
					t.Errorf("got %v", got.header)
				}
			}
			newOuter := func() *dedupe.Guard {
				guard, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, keyfuncs.Header("Outer"))
				if err != nil {
					t.Fatal(err)
				}
				return guard
			}
			outer := newOuter()
			send(outer, false)
			send(outer, true)
			other := newOuter()
			send(other, true) // by the inner one
			send(other, true)
		})
	}
}

// A request that a middleware further in turns away did not run: nothing is kept of that, whoever
// renders it and whatever is in between.
func TestInnerRefusalIsNotKept(t *testing.T) {
	for name, between := range map[string]func(http.ResponseWriter) http.ResponseWriter{
		"directly": func(w http.ResponseWriter) http.ResponseWriter { return w },
		"wrapped":  func(w http.ResponseWriter) http.ResponseWriter { return unwrapOnly{w} },
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			inner := httpmw.New(account(t, store))(numbered(http.StatusOK))
			handler := httpmw.New(newOnce(t, store))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inner.ServeHTTP(between(w), r)
			}))
			record(handler, newRecorded("k", "")).checkRefused(t, dedupe.KeyMissing)
			record(handler, onAccount("k", "7")).check(t, http.StatusOK, "run 1", false)
			record(handler, onAccount("k", "7")).check(t, http.StatusOK, "run 1", true)
		})
	}
}

// The handler's context carries the lease, and the fence rises.
func TestLeaseInContext(t *testing.T) {
	guard := account(t, memstore.New())
	var fences []uint64
	handler := wrap(t, httpmw.Config{}, func(_ http.ResponseWriter, r *http.Request) {
		lease, found := guard.Lease(r.Context())
		if !found {
			t.Fatal("no lease")
		}
		fences = append(fences, lease.Fence())
	}, guard)
	record(handler, onAccount("", "7"))
	record(handler, onAccount("", "7"))
	if len(fences) != 2 || fences[0] == 0 || fences[1] <= fences[0] {
		t.Errorf("fences %d", fences)
	}
}
