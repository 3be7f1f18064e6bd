package redistest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// setup returns a connection through a proxy, and a client past it.
func setup(t *testing.T) (proxy *redistest.Proxy, w *wire, direct *redis.Client) {
	t.Helper()

	server := redistest.Start(t)
	proxy = redistest.NewProxy(t, server.Addr())

	return proxy, dial(t, proxy.Addr()), server.Client()
}

func mustFire(t *testing.T, rule *redistest.Rule) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := rule.Wait(ctx); err != nil {
		t.Fatalf("the fault does not occur: %v", err)
	}
}

func TestDropReply(t *testing.T) {
	proxy, w, direct := setup(t)
	rule := proxy.On(redistest.Command("set", "key"), 1, redistest.DropReply)
	w.send("PING")
	w.send("SET", "key", "value")
	w.receives("+PONG\r\n")
	mustFire(t, rule)
	expect(t, direct.Get(t.Context(), "key"), "value")

	w.send("SET", "later", "executed")
	redistest.Eventually(t, patience, func() bool {
		return direct.Get(t.Context(), "later").Val() == "executed"
	}, "later requests do not reach the server")
	w.silent()

	other := dial(t, proxy.Addr())
	other.send("SET", "key", "other")
	other.receives("+OK\r\n")
}

func TestCutBeforeRequest(t *testing.T) {
	proxy, w, direct := setup(t)
	rule := proxy.On(redistest.Command("set", "key"), 1, redistest.CutBeforeRequest)
	w.pipeline([]string{"INCR", "counter"}, []string{"SET", "key", "value"}, []string{"SET", "later", "value"})
	w.receives(":1\r\n")
	w.closed()
	mustFire(t, rule)
	if n := direct.Exists(t.Context(), "key", "later").Val(); n != 0 {
		t.Errorf("%d of the requests that were cut reached the server", n)
	}
	if n := proxy.Count(redistest.Any); n != 1 {
		t.Errorf("%d requests were recorded, want 1", n)
	}
}

func TestCutAfterRequest(t *testing.T) {
	proxy, w, direct := setup(t)
	rule := proxy.On(redistest.Command("set"), 1, redistest.CutAfterRequest)
	w.pipeline([]string{"INCR", "counter"}, []string{"SET", "key", "value"})
	w.receives(":1\r\n")
	w.closed()
	mustFire(t, rule)
	expect(t, direct.Get(t.Context(), "key"), "value")
}

// TestCutAfterRequestAwaitsExecution has a command take as long as the test
// wants it to.
func TestCutAfterRequestAwaitsExecution(t *testing.T) {
	proxy, w, direct := setup(t)
	rule := proxy.On(redistest.Command("blpop"), 1, redistest.CutAfterRequest)
	w.send("BLPOP", "list", "0")
	w.silent()
	if rule.Fired() != 0 {
		t.Error("the connection is said to have been cut before the reply")
	}
	direct.LPush(t.Context(), "list", "element")
	w.closed()
	mustFire(t, rule)
}

func TestDelay(t *testing.T) {
	const delay = 100 * time.Millisecond
	for name, fault := range map[string]redistest.Fault{
		"reply": redistest.Delay(delay), "request": redistest.DelayRequest(delay),
	} {
		t.Run(name, func(t *testing.T) {
			proxy, w, _ := setup(t)
			proxy.On(redistest.Command("incr"), 1, fault)
			begin := time.Now()
			w.send("INCR", "counter")
			w.send("PING")
			w.receives(":1\r\n")
			if elapsed := time.Since(begin); elapsed < delay {
				t.Errorf("answered after %v", elapsed)
			}
			w.receives("+PONG\r\n")
		})
	}
}

func TestBlock(t *testing.T) {
	proxy, w, direct := setup(t)
	rule := proxy.On(redistest.Command("set"), 0, redistest.Block())
	w.send("SET", "key", "value")
	w.send("INCR", "counter")
	mustFire(t, rule)
	expect(t, direct.Get(t.Context(), "key"), "value")
	w.silent()

	rule.Release()
	rule.Release()
	w.receives("+OK\r\n:1\r\n")
	w.send("SET", "key", "again")
	w.receives("+OK\r\n")
}

func TestBlockRequest(t *testing.T) {
	proxy, w, direct := setup(t)
	rule := proxy.On(redistest.Command("set"), 1, redistest.BlockRequest())
	w.send("SET", "key", "value")
	mustFire(t, rule)
	w.silent()
	expect(t, direct.Get(t.Context(), "key"), "redis: nil")

	// That its sender gives up does not keep it from arriving.
	_ = w.conn.Close()
	rule.Release()
	redistest.Eventually(t, patience, func() bool {
		return direct.Get(t.Context(), "key").Val() == "value"
	}, "the request does not reach the server")
}

func TestReplyWith(t *testing.T) {
	proxy, w, direct := setup(t)
	const refusal = "-READONLY You can't write against a read only replica.\r\n"
	rule := proxy.On(redistest.Command("set"), 1, redistest.ReplyWith(refusal))
	w.send("BLPOP", "list", "0")
	w.send("SET", "key", "value")
	w.send("PING")
	w.silent()
	direct.LPush(t.Context(), "list", "element")
	w.receives("*2\r\n$4\r\nlist\r\n$7\r\nelement\r\n" + refusal + "+PONG\r\n")
	mustFire(t, rule)
	expect(t, direct.Get(t.Context(), "key"), "redis: nil")
}

func TestExecuteAndReplyWith(t *testing.T) {
	proxy, w, direct := setup(t)
	proxy.On(redistest.Command("set"), 1, redistest.ExecuteAndReplyWith("-ERR no\r\n"))
	w.send("SET", "key", "value")
	w.send("PING")
	w.receives("-ERR no\r\n+PONG\r\n")
	expect(t, direct.Get(t.Context(), "key"), "value")
}

func TestStaleReply(t *testing.T) {
	proxy, w, _ := setup(t)
	rule := proxy.On(redistest.Command("incr", "b"), 1, redistest.StaleReply)
	w.send("INCRBY", "a", "10")
	w.send("INCR", "b")
	w.send("INCRBY", "c", "30")
	w.receives(":10\r\n:10\r\n:30\r\n")
	mustFire(t, rule)

	proxy.On(redistest.Command("incr", "b"), 1, redistest.StaleReply)
	first := dial(t, proxy.Addr())
	first.send("INCR", "b")
	first.receives(":2\r\n")
}

func TestShiftReplies(t *testing.T) {
	proxy, w, _ := setup(t)
	rule := proxy.On(redistest.Command("incr", "b"), 1, redistest.ShiftReplies)
	for _, request := range [][]string{{"INCRBY", "a", "10"}, {"INCR", "b"}, {"INCRBY", "c", "30"}, {"PING"}} {
		w.send(request...)
	}
	w.receives(":10\r\n:10\r\n:1\r\n:30\r\n")
	w.silent()
	mustFire(t, rule)

	proxy.On(redistest.Command("incr", "b"), 1, redistest.ShiftReplies)
	first := dial(t, proxy.Addr())
	first.send("INCR", "b")
	first.send("PING")
	first.send("INCR", "b")
	first.receives(":2\r\n:2\r\n+PONG\r\n")
}

func TestRules(t *testing.T) {
	proxy, w, _ := setup(t)
	replyWith := func(text string) redistest.Fault { return redistest.ReplyWith("+" + text + "\r\n") }
	other := dial(t, proxy.Addr())

	second := proxy.On(redistest.Command("ping"), 2, replyWith("second"))
	every := proxy.On(redistest.Command("ping"), 0, replyWith("every"))
	third := proxy.On(redistest.Command("ping"), 3, replyWith("third"))
	w.send("PING")
	w.receives("+every\r\n")
	other.send("PING")
	other.receives("+second\r\n")
	w.send("PING")
	w.receives("+every\r\n")
	for rule, want := range map[*redistest.Rule]int{second: 1, every: 2, third: 0} {
		if got := rule.Fired(); got != want {
			t.Errorf("a rule fired %d times, want %d", got, want)
		}
	}

	proxy.Remove(every)
	w.send("PING")
	w.receives("+PONG\r\n")

	// Counting begins with the rule.
	proxy.On(redistest.Command("ping"), 1, replyWith("next"))
	w.send("PING")
	w.send("PING")
	w.receives("+next\r\n+PONG\r\n")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := third.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for what does not happen gave %v", err)
	}
}

func TestMatch(t *testing.T) {
	const body = "return 1"
	digest := redis.NewScript(body).Hash()
	for name, c := range map[string]struct {
		match   redistest.Match
		picks   [][]string
		ignores [][]string
	}{
		"any": {
			match: redistest.Any,
			picks: [][]string{{"PING"}, {"SET", "a", "b"}},
		},
		"command": {
			match:   redistest.Command("evalsha"),
			picks:   [][]string{{"EVALSHA", digest, "0"}, {"evalsha"}},
			ignores: [][]string{{"eval", "evalsha"}, {"evalsha_ro"}},
		},
		"subcommand": {
			match:   redistest.Command("Client", "setinfo"),
			picks:   [][]string{{"CLIENT", "SETINFO", "lib-ver", "1"}},
			ignores: [][]string{{"client"}, {"client", "id"}, {"setinfo", "client"}},
		},
		"contains": {
			match:   redistest.Contains("order:7"),
			picks:   [][]string{{"get", "prefix:order:7"}, {"eval", body, "1", "order:7"}},
			ignores: [][]string{{"get", "order:", "7"}, {"get", "ORDER:7"}},
		},
		"script": {
			match: redistest.Script(digest),
			picks: [][]string{
				{"evalsha", digest, "0"},
				{"EVAL", body, "0"},
				{"evalsha_ro", digest, "0"},
				{"eval_ro", body, "0"},
			},
			ignores: [][]string{{"evalsha"}, {"eval", body + " ", "0"}, {"get", digest}, {"script", "exists", digest}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, args := range c.picks {
				if !c.match(args) {
					t.Errorf("%q is not picked", args)
				}
			}
			for _, args := range c.ignores {
				if c.match(args) {
					t.Errorf("%q is picked", args)
				}
			}
		})
	}
}
