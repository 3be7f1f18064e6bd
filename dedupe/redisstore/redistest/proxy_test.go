package redistest_test

import (
	"fmt"
	"io"
	"net"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// TestProxyPassesEveryType has a server reply with each type there is, and looks
// for any difference the proxy makes. A rule on the last request shows whether
// requests and replies are still paired by then: to mistake a reply for two would
// go unnoticed if there were none due, so they come when all have been requested.
func TestProxyPassesEveryType(t *testing.T) {
	eachServer(t, func(t *testing.T, opts ...redistest.Option) {
		opts = append(opts, redistest.Config("--enable-debug-command", "local"))
		server := redistest.Start(t, opts...)
		types := []string{
			"string", "integer", "double", "null", "array", "set", "map", "attrib", "verbatim", "true", "false", "bignum",
		}
		for _, version := range []string{"2", "3"} {
			proxy := redistest.NewProxy(t, server.Addr())
			rule := proxy.On(redistest.Command("echo", "end"), 1, redistest.ExecuteAndReplyWith("$3\r\nEND\r\n"))
			begin := proxy.On(redistest.Command("echo", "begin"), 1, redistest.Block())
			converse := func(addr, end string, sent func()) string {
				w := dial(t, addr)
				w.send("HELLO", version)
				w.send("ECHO", "begin")
				for _, name := range types {
					w.send("DEBUG", "PROTOCOL", name)
				}
				w.send("GET", "missing")
				w.send("NO-SUCH-COMMAND", "a\r\n+b")
				w.send("SET", "key", "\x00\xff\r\n$-1\r\n"+strings.Repeat("x", 1<<20))
				w.send("GET", "key")
				w.send("EVAL", "return {1, {false, {}, 'x'}, redis.error_reply('E')}", "0")
				w.send("BLPOP", "missing", "0.01")
				w.send("SET", "empty", "")
				w.send("GET", "empty")
				w.send("ECHO", "end")
				sent()
				// The greeting differs by the connection's number.
				w.until("$5\r\nbegin\r\n")
				return w.until("$3\r\n" + end + "\r\n")
			}
			direct := converse(server.Addr(), "end", func() {})
			proxied := converse(proxy.Addr(), "END", func() {
				redistest.Eventually(t, patience, func() bool {
					return proxy.Count(redistest.Command("echo", "end")) == 1
				}, "the requests do not pass")
				begin.Release()
			})
			if strings.Replace(proxied, "END", "end", 1) != direct {
				t.Errorf("RESP%s: the proxy changes the replies\nfrom %.2000q\nto   %.2000q", version, direct, proxied)
			}
			if version == "3" && (!strings.Contains(direct, "|1\r\n") || !strings.Contains(direct, "=29\r\n")) {
				t.Errorf("the server has not sent each type: %.2000q", direct)
			}
			if rule.Fired() != 1 {
				t.Errorf("RESP%s: the rule fired %d times", version, rule.Fired())
			}
		}
	})
}

func TestProxyStockClient(t *testing.T) {
	eachServer(t, func(t *testing.T, opts ...redistest.Option) {
		proxy := redistest.NewProxy(t, redistest.Start(t, opts...).Addr())
		options, err := redis.ParseURL(proxy.URL())
		if err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(options)
		t.Cleanup(func() { _ = client.Close() })
		ctx := t.Context()

		mustSet(t, client, "key", "value")
		expect(t, client.Get(ctx, "key"), "value")
		expect(t, client.Get(ctx, "missing"), "redis: nil")
		if !strings.Contains(client.Info(ctx, "server").Val(), "tcp_port") {
			t.Error("INFO does not get through")
		}
		subscription := client.Subscribe(ctx, "news", "gossip")
		t.Cleanup(func() { _ = subscription.Close() })
		for range 2 {
			if _, err := subscription.Receive(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if n := client.Publish(ctx, "gossip", "psst").Val(); n != 1 {
			t.Errorf("%d subscribers", n)
		}
		message, err := subscription.ReceiveMessage(ctx)
		if err != nil || message.Payload != "psst" {
			t.Errorf("received %v (error %v)", message, err)
		}
	})
}

// TestProxyPushes has the server send something unasked between replies.
func TestProxyPushes(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	w := dial(t, proxy.Addr())
	w.send("HELLO", "3")
	w.send("CLIENT", "TRACKING", "ON")
	w.send("GET", "key")
	w.until("+OK\r\n")
	w.receives("_\r\n")

	proxy.On(redistest.Command("blpop"), 1, redistest.ExecuteAndReplyWith("+popped\r\n"))
	w.send("BLPOP", "list", "0")
	mustSet(t, server.Client(), "key", "changed")
	w.receives(">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n")
	server.Client().LPush(t.Context(), "list", "element")
	w.receives("+popped\r\n")
}

// TestProxySubscriptions subscribes on connections that are used otherwise too.
func TestProxySubscriptions(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	proxy.On(redistest.Command("echo"), 0, redistest.ExecuteAndReplyWith("+echoed\r\n"))
	for version, kind := range map[string]string{"2": "*", "3": ">"} {
		w := dial(t, proxy.Addr())
		w.send("HELLO", version)
		w.send("SUBSCRIBE", "news", "gossip")
		w.until(kind + "3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n" + kind + "3\r\n$9\r\nsubscribe\r\n$6\r\ngossip\r\n:2\r\n")
		server.Client().Publish(t.Context(), "gossip", "psst")
		w.receives(kind + "3\r\n$7\r\nmessage\r\n$6\r\ngossip\r\n$4\r\npsst\r\n")
		w.send("UNSUBSCRIBE", "news", "gossip")
		w.until("gossip\r\n:0\r\n")
		w.send("ECHO", "this")
		w.receives("+echoed\r\n")
	}
}

func TestProxyRequests(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	if got := proxy.Requests(); len(got) != 0 {
		t.Errorf("before any: %v", got)
	}
	proxy.On(redistest.Command("get"), 0, redistest.ReplyWith("$-1\r\n"))
	w := dial(t, proxy.Addr())
	w.send("SET", "key", "a\r\nb")
	w.send("GET", "key")
	w.send("ping")
	w.receives("+OK\r\n$-1\r\n+PONG\r\n")

	want := [][]string{{"SET", "key", "a\r\nb"}, {"ping"}}
	if got := proxy.Requests(); !reflect.DeepEqual(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
	if n := proxy.Count(redistest.Command("PING")); n != 1 {
		t.Errorf("counted %d pings", n)
	}
	if n := proxy.Count(redistest.Any); n != 2 {
		t.Errorf("counted %d requests", n)
	}
}

func TestProxyBlackHole(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	before := dial(t, proxy.Addr())
	waiting := dial(t, proxy.Addr())
	before.send("SET", "key", "before")
	before.receives("+OK\r\n")
	waiting.send("BLPOP", "list", "0")
	redistest.Eventually(t, patience, func() bool {
		return proxy.Count(redistest.Command("blpop")) == 1
	}, "the request does not pass")

	proxy.BlackHole()
	proxy.BlackHole()
	direct := server.Client()
	direct.LPush(t.Context(), "list", "element")
	before.send("SET", "key", "during")
	during := dial(t, proxy.Addr())
	during.send("PING")
	for _, w := range []*wire{before, waiting, during} {
		w.silent()
	}
	expect(t, direct.Get(t.Context(), "key"), "before")

	proxy.Resume()
	before.receives("+OK\r\n")
	waiting.receives("*2\r\n$4\r\nlist\r\n$7\r\nelement\r\n")
	during.receives("+PONG\r\n")
	expect(t, direct.Get(t.Context(), "key"), "during")
}

func TestProxyBlackHoleHidesEnds(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	w := dial(t, proxy.Addr())
	w.send("PING")
	w.receives("+PONG\r\n")

	proxy.BlackHole()
	server.Kill()
	w.silent()
	proxy.Resume()
	w.closed()
}

func TestProxyCutAll(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	old := dial(t, proxy.Addr())
	old.send("SET", "key", "before")
	old.receives("+OK\r\n")

	proxy.BlackHole()
	old.send("SET", "key", "lost")
	old.silent()
	proxy.CutAll()
	old.closed()
	fresh := dial(t, proxy.Addr())
	fresh.send("GET", "key")
	fresh.silent()
	proxy.Resume()
	fresh.receives("$6\r\nbefore\r\n")
}

func TestProxyWithoutServer(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	server.Stop()
	dial(t, proxy.Addr()).closed()
	server.Restart()
	w := dial(t, proxy.Addr())
	w.send("PING")
	w.receives("+PONG\r\n")
}

func TestProxyReportsGibberish(t *testing.T) {
	for name, reply := range map[string]string{
		"unknown type": "?3\r\n", "no length": "*x\r\n", "no return": ":1\n", "negative length": "%-5\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, reply)
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}()

			_, failed := observe(t, func(tb testing.TB) {
				dial(t, redistest.NewProxy(tb, listener.Addr().String()).Addr()).closed()
			})
			if want := fmt.Sprintf("%q", reply); !strings.Contains(failed, want) {
				t.Errorf("failed with %q, which does not show %s", failed, want)
			}
		})
	}
}

func TestProxyStopsWithTest(t *testing.T) {
	server := redistest.Start(t)
	before := runtime.NumGoroutine()
	var addr string
	t.Run("proxy", func(t *testing.T) {
		proxy := redistest.NewProxy(t, server.Addr())
		addr = proxy.Addr()
		held := []*redistest.Rule{
			proxy.On(redistest.Command("set"), 0, redistest.BlockRequest()),
			proxy.On(redistest.Command("get"), 0, redistest.Block()),
			proxy.On(redistest.Command("ping"), 0, redistest.Delay(time.Hour)),
			proxy.On(redistest.Command("incr"), 0, redistest.DropReply),
		}
		for _, request := range [][]string{{"SET", "a", "b"}, {"GET", "a"}, {"PING"}, {"INCR", "n"}} {
			dial(t, addr).send(request...)
		}
		for _, rule := range held {
			mustFire(t, rule)
		}
		blocked := dial(t, addr)
		blocked.send("BLPOP", "nothing", "0")
		blocked.send("GET", "a")
		redistest.Eventually(t, patience, func() bool {
			return proxy.Count(redistest.Command("get")) == 2
		}, "the request does not pass")
		proxy.BlackHole()
		dial(t, addr).send("PING")
	})
	if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		_ = conn.Close()
		t.Error("the proxy has outlived its test")
	}
	assertGoroutines(t, before)
}
