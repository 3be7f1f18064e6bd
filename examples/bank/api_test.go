package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

func TestAPI(t *testing.T) {
	for _, unguarded := range []bool{false, true} {
		c := quick()
		c.unguarded = unguarded
		overHTTP(t, c, func(t *testing.T, url string, _ *miniredis.Miniredis) {
			for i, step := range []struct {
				method, path, body string
				status             int
				location, answer   string
			}{
				{"GET", "/accounts/A", "", 200, "", `{"account":"A","balance":1000,"executions":0}`},
				{"POST", "/accounts/A/withdraw", `{"amount":200}`, 201, "/transactions/1", `{"transaction":1,"account":"A","balance":800}`},
				{"POST", "/accounts/A/transfer", `{"to":"B","amount":300}`, 201, "/transactions/2", `{"transaction":2,"account":"A","balance":500}`},
				{"GET", "/accounts/A", "", 200, "", `{"account":"A","balance":500,"executions":2}`},
				{"GET", "/accounts/B", "", 200, "", `{"account":"B","balance":1300,"executions":1}`},
				{"GET", "/accounts/C", "", 200, "", `{"account":"C","balance":1000,"executions":0}`},
				{"POST", "/accounts/A/withdraw", ` {"amount":500,"memo":["of","a","newer","client"]} `, 201, "/transactions/3", `{"transaction":3,"account":"A","balance":0}`},
				{"POST", "/accounts/B/withdraw", `{"amount":1}`, 201, "/transactions/4", `{"transaction":4,"account":"B","balance":1299}`},
				{"HEAD", "/accounts/B", "", 200, "", ""},
				{"DELETE", "/accounts/B", "", 405, "", ""},
				{"GET", "/accounts/B/withdraw", "", 405, "", ""},
			} {
				r := send(t.Context(), step.method, url+step.path, step.body)
				if r.err != nil || r.status != step.status || r.header.Get("Location") != step.location || r.status < 400 && r.body != step.answer {
					t.Errorf("unguarded %t, step %d: %d %q %s %v", unguarded, i, r.status, r.header.Get("Location"), r.body, r.err)
				}
				if got := r.header.Get("Content-Type"); r.status < 300 && got != "application/json" {
					t.Errorf("unguarded %t, step %d: Content-Type: %s", unguarded, i, got)
				}
			}
		})
	}
}

func TestProblems(t *testing.T) {
	const withdraw, transfer = "/accounts/A/withdraw", "/accounts/A/transfer"
	for _, test := range []struct {
		name, path, body string
		status           int
		guarded          string // the type's end
		unguarded        string // the same; "" where it takes a guard to find something wrong
		headers          []string
	}{
		{name: "no account", path: "/accounts/X/withdraw", body: `{"amount":1}`, status: 404, guarded: "unknown-account", unguarded: "unknown-account"},
		{name: "account in another case", path: "/accounts/a/withdraw", body: `{"amount":1}`, status: 404, guarded: "unknown-account", unguarded: "unknown-account"},
		{name: "transfer from no account", path: "/accounts/X/transfer", body: `{"to":"B","amount":1}`, status: 404, guarded: "unknown-account", unguarded: "unknown-account"},
		{name: "transfer to no account", path: transfer, body: `{"to":"X","amount":1}`, status: 404, guarded: "unknown-account", unguarded: "unknown-account"},
		{name: "not enough money", path: withdraw, body: `{"amount":1001}`, status: 422, guarded: "insufficient-funds", unguarded: "insufficient-funds"},
		{name: "not enough money to transfer", path: transfer, body: `{"to":"B","amount":1001}`, status: 422, guarded: "insufficient-funds", unguarded: "insufficient-funds"},

		{name: "no amount", path: withdraw, body: `{}`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "nothing", path: withdraw, body: `{"amount":0}`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "negative", path: withdraw, body: `{"amount":-1}`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "fraction", path: withdraw, body: `{"amount":1.5}`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "text", path: withdraw, body: `{"amount":"200"}`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "more than is allowed", path: withdraw, body: `{"amount":1000000000001}`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "more than fits", path: withdraw, body: `{"amount":9223372036854775808}`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "negative transfer", path: transfer, body: `{"to":"B","amount":-1}`, status: 400, guarded: "bad-request", unguarded: "bad-request"},

		{name: "no body", path: withdraw, body: ``, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "null", path: withdraw, body: `null`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "list", path: withdraw, body: `[200]`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "not JSON", path: withdraw, body: `amount=200`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "cut off", path: withdraw, body: `{"amount":200`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "rubbish behind", path: withdraw, body: `{"amount":200} x`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "two values", path: withdraw, body: `{"amount":200}{"amount":200}`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "too large", path: withdraw, body: `{"amount":200,"memo":"` + strings.Repeat("x", maxBody) + `"}`, status: 413, guarded: "body-too-large", unguarded: "body-too-large"},
		{name: "too large behind", path: withdraw, body: `{"amount":200}` + strings.Repeat(" ", maxBody), status: 413, guarded: "body-too-large", unguarded: "body-too-large"},

		{name: "to itself", path: transfer, body: `{"to":"A","amount":1}`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "to a number", path: transfer, body: `{"to":7,"amount":1}`, status: 400, guarded: "bad-request", unguarded: "bad-request"},
		{name: "to nobody", path: transfer, body: `{"amount":1}`, status: 400, guarded: "key-missing", unguarded: "bad-request"},
		{name: "to an empty name", path: transfer, body: `{"to":"","amount":1}`, status: 400, guarded: "key-missing", unguarded: "bad-request"},
		{name: "transfer not JSON", path: transfer, body: `to=B`, status: 400, guarded: "key-invalid", unguarded: "bad-request"},
		{name: "transfer list", path: transfer, body: `[]`, status: 400, guarded: "key-invalid", unguarded: "bad-request"},
		{name: "transfer with rubbish behind", path: transfer, body: `{"to":"B","amount":1} x`, status: 400, guarded: "key-invalid", unguarded: "bad-request"},
		// What the guard locks must be what the handler pays.
		{name: "to two", path: transfer, body: `{"to":"C","to":"B","amount":1}`, status: 400, guarded: "key-invalid"},
		{name: "to in another case", path: transfer, body: `{"to":"C","To":"B","amount":1}`, status: 400, guarded: "key-invalid"},

		{name: "empty key", path: withdraw, body: `{"amount":1}`, status: 400, guarded: "key-invalid", headers: []string{"Idempotency-Key", ""}},
		{name: "two keys", path: withdraw, body: `{"amount":1}`, status: 400, guarded: "key-invalid", headers: []string{"Idempotency-Key", "a", "Idempotency-Key", "b"}},
		{name: "no bearer", path: withdraw, body: `{"amount":1}`, status: 400, guarded: "key-invalid", headers: []string{"Idempotency-Key", "a", "Authorization", "Basic YTpi"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, unguarded := range []bool{false, true} {
				c, name := quick(), test.guarded
				if unguarded {
					c.unguarded, name = true, test.unguarded
				}
				if name == "" {
					continue
				}
				s := open(t, c)
				byNetHTTP := send(t.Context(), "POST", s.http+test.path, test.body, test.headers...)
				byEcho := send(t.Context(), "POST", s.echo+test.path, test.body, test.headers...)
				wantProblem(t, byNetHTTP, test.status, name)
				wantAlike(t, byNetHTTP, byEcho)
				wantAccount(t, s.http, "A", `{"account":"A","balance":1000,"executions":0}`)
				wantAccount(t, s.http, "B", `{"account":"B","balance":1000,"executions":0}`)
				wantAccount(t, s.http, "C", `{"account":"C","balance":1000,"executions":0}`)
				if keys := guardKeys(s.redis); len(keys) > 0 {
					t.Errorf("left behind: %q", keys)
				}
			}
		})
	}
	t.Run("show", func(t *testing.T) {
		s := open(t, quick())
		byNetHTTP := send(t.Context(), "GET", s.http+"/accounts/X", "")
		wantProblem(t, byNetHTTP, 404, "unknown-account")
		wantAlike(t, byNetHTTP, send(t.Context(), "GET", s.echo+"/accounts/X", ""))
	})
}

// wantAlike checks that Echo answers as net/http does.
func wantAlike(t *testing.T, byNetHTTP, byEcho reply) {
	t.Helper()
	byNetHTTP.header.Del("Date")
	byEcho.header.Del("Date")
	if byEcho.err != nil || byEcho.status != byNetHTTP.status || byEcho.body != byNetHTTP.body || !maps.EqualFunc(byEcho.header, byNetHTTP.header, slices.Equal) {
		t.Errorf("Echo: %d %s %v %v\nnet/http: %d %s %v", byEcho.status, byEcho.body, byEcho.header, byEcho.err, byNetHTTP.status, byNetHTTP.body, byNetHTTP.header)
	}
}

func TestIdempotencyKey(t *testing.T) {
	overHTTP(t, quick(), func(t *testing.T, url string, _ *miniredis.Miniredis) {
		pay := func(path, body, key, authorization string) reply {
			t.Helper()
			headers := []string{"Idempotency-Key", key}
			if authorization != "" {
				headers = append(headers, "Authorization", authorization)
			}
			return send(t.Context(), "POST", url+path, body, headers...)
		}
		first := pay("/accounts/A/withdraw", `{"amount":200}`, "k", "Bearer anna")
		again := pay("/accounts/A/withdraw", `{"amount":200}`, `"k"`, "Bearer anna")
		if first.status != 201 || again.status != 201 || again.body != first.body || again.header.Get("Location") != "/transactions/1" {
			t.Errorf("first %d %s, again %d %s %v", first.status, first.body, again.status, again.body, again.header)
		}
		if first.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("Idempotent-Replayed: %q, then %q", first.header.Get("Idempotent-Replayed"), again.header.Get("Idempotent-Replayed"))
		}
		wantProblem(t, pay("/accounts/A/withdraw", `{"amount":300}`, "k", "Bearer anna"), 422, "key-reused")
		wantAccount(t, url, "A", `{"account":"A","balance":800,"executions":1}`)

		for _, other := range []struct{ path, body, caller string }{
			{"/accounts/A/withdraw", `{"amount":200}`, "Bearer berta"},
			{"/accounts/A/withdraw", `{"amount":200}`, ""},
			{"/accounts/A/transfer", `{"to":"B","amount":200}`, "Bearer anna"},
		} {
			if r := pay(other.path, other.body, "k", other.caller); r.status != 201 || r.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("%+v: %d %s %v", other, r.status, r.body, r.header)
			}
		}
		wantAccount(t, url, "A", `{"account":"A","balance":200,"executions":4}`)

		refused := pay("/accounts/A/withdraw", `{"amount":201}`, "poor", "")
		again = pay("/accounts/A/withdraw", `{"amount":201}`, "poor", "")
		wantProblem(t, refused, 422, "insufficient-funds")
		if again.body != refused.body || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("a verdict is not kept: %s, then %s", refused.body, again.body)
		}
	})
}

// A withdrawal and a transfer to the account exclude each other, on whichever side it stands.
func TestTransferLocksBothAccounts(t *testing.T) {
	c := quick()
	c.lease, c.work, c.wait = time.Second, patience, 0
	overHTTP(t, c, func(t *testing.T, url string, redis *miniredis.Miniredis) {
		ctx, cancel := context.WithCancel(t.Context())
		running := make(chan reply, 1)
		go func() { running <- send(ctx, "POST", url+"/accounts/A/transfer", `{"to":"B","amount":300}`) }()
		eventually(t, "both accounts are locked", func() bool { return len(guardKeys(redis)) == 2 })

		wantProblem(t, send(t.Context(), "POST", url+"/accounts/A/withdraw", `{"amount":1}`), 409, "resource-locked")
		wantProblem(t, send(t.Context(), "POST", url+"/accounts/B/withdraw", `{"amount":1}`), 409, "resource-locked")
		wantProblem(t, send(t.Context(), "POST", url+"/accounts/B/transfer", `{"to":"A","amount":1}`), 409, "resource-locked")
		wantProblem(t, send(t.Context(), "POST", url+"/accounts/C/transfer", `{"to":"B","amount":1}`), 409, "resource-locked")

		cancel()
		<-running
		releaseGuards(redis)
	})
}

func TestClientThatLeaves(t *testing.T) {
	c := quick()
	c.work = time.Second
	overHTTP(t, c, func(t *testing.T, url string, redis *miniredis.Miniredis) {
		ctx, hangUp := context.WithCancel(t.Context())
		left := make(chan reply, 1)
		go func() {
			left <- send(ctx, "POST", url+"/accounts/A/withdraw", `{"amount":200}`, "Idempotency-Key", "k")
		}()
		eventually(t, "the handler runs", func() bool { return len(guardKeys(redis)) == 2 })
		hangUp()
		if r := <-left; r.err == nil {
			t.Fatalf("answered before the client left: %d %s", r.status, r.body)
		}
		again := send(t.Context(), "POST", url+"/accounts/A/withdraw", `{"amount":200}`, "Idempotency-Key", "k")
		if again.body != `{"transaction":1,"account":"A","balance":800}` || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%d %s %v %v", again.status, again.body, again.header, again.err)
		}
		wantAccount(t, url, "A", `{"account":"A","balance":800,"executions":1}`)
	})
}

func TestLeaseLost(t *testing.T) {
	c := quick()
	c.lease, c.work = 300*time.Millisecond, 2*patience
	overHTTP(t, c, func(t *testing.T, url string, redis *miniredis.Miniredis) {
		running := make(chan reply, 1)
		go func() { running <- send(t.Context(), "POST", url+"/accounts/A/withdraw", `{"amount":200}`) }()
		eventually(t, "the account is locked", func() bool { return len(guardKeys(redis)) == 1 })
		releaseGuards(redis)
		select {
		case r := <-running:
			if p := wantProblem(t, r, 503, "interrupted"); !p.Retryable || strings.Contains(r.body, "lease") {
				t.Errorf("%s", r.body)
			}
		case <-time.After(patience):
			t.Fatal("works on without its lease")
		}
		wantAccount(t, url, "A", `{"account":"A","balance":1000,"executions":0}`)
	})
}

func TestRedisFails(t *testing.T) {
	const infrastructure = "LOADING secret.internal:6379"
	t.Run("before anything was written", func(t *testing.T) {
		c := quick()
		c.unguarded = true
		overHTTP(t, c, func(t *testing.T, url string, redis *miniredis.Miniredis) {
			redis.SetError(infrastructure)
			for _, r := range []reply{
				send(t.Context(), "GET", url+"/accounts/A", ""),
				send(t.Context(), "POST", url+"/accounts/A/withdraw", `{"amount":1}`),
				send(t.Context(), "POST", url+"/accounts/A/transfer", `{"to":"B","amount":1}`),
			} {
				if p := wantProblem(t, r, 503, "ledger-unavailable"); !p.Retryable || strings.Contains(r.body, "secret") {
					t.Errorf("%s", r.body)
				}
			}
			redis.SetError("")
			wantAccount(t, url, "A", `{"account":"A","balance":1000,"executions":0}`)
		})
	})
	t.Run("on the write", func(t *testing.T) {
		overHTTP(t, quick(), func(t *testing.T, url string, redis *miniredis.Miniredis) {
			redis.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
				if command != "EXEC" {
					return false
				}
				c.WriteError(infrastructure)
				return true
			})
			withdraw := func() reply {
				return send(t.Context(), "POST", url+"/accounts/A/withdraw", `{"amount":1}`, "Idempotency-Key", "pay")
			}
			r := withdraw()
			if p := wantProblem(t, r, 504, "outcome-uncertain"); p.Retryable || strings.Contains(r.body, "secret") {
				t.Errorf("%s", r.body)
			}
			redis.Server().SetPreHook(nil)
			wantProblem(t, withdraw(), 504, "outcome-uncertain") // it may have been made: it does not run again
			wantAccount(t, url, "A", `{"account":"A","balance":1000,"executions":0}`)
		})
	})
	t.Run("under the guards", func(t *testing.T) {
		overHTTP(t, quick(), func(t *testing.T, url string, redis *miniredis.Miniredis) {
			redis.SetError(infrastructure)
			r := send(t.Context(), "POST", url+"/accounts/A/withdraw", `{"amount":1}`)
			if p := wantProblem(t, r, 503, "store-unavailable"); !p.Retryable || strings.Contains(r.body, "secret") {
				t.Errorf("%s", r.body)
			}
			redis.SetError("")
		})
	})
	t.Run("with a balance that is none", func(t *testing.T) {
		overHTTP(t, quick(), func(t *testing.T, url string, redis *miniredis.Miniredis) {
			if err := redis.Set("{bank}:balance:A", "plenty"); err != nil {
				t.Fatal(err)
			}
			wantProblem(t, send(t.Context(), "GET", url+"/accounts/A", ""), 503, "ledger-unavailable")
			wantProblem(t, send(t.Context(), "POST", url+"/accounts/A/withdraw", `{"amount":1}`), 503, "ledger-unavailable")
		})
	})
}
