package redistest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// patience is longer than anything here takes.
const patience = 20 * time.Second

// eachServer runs a test with each kind of server, at the same time: the default
// one, and Valkey if that is installed.
func eachServer(t *testing.T, test func(t *testing.T, opts ...redistest.Option)) {
	t.Helper()

	t.Run("default", func(t *testing.T) {
		t.Parallel()
		test(t)
	})
	t.Run("valkey", func(t *testing.T) {
		t.Parallel()
		_, err := exec.LookPath("valkey-server")
		if err != nil {
			t.Skip("valkey-server is not installed")
		}
		test(t, redistest.Binary("valkey-server"))
	})
}

func TestServerAnswers(t *testing.T) {
	eachServer(t, func(t *testing.T, opts ...redistest.Option) {
		server := redistest.Start(t, opts...)
		options, err := redis.ParseURL(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		if options.Addr != server.Addr() {
			t.Errorf("URL leads to %s, the server is at %s", options.Addr, server.Addr())
		}
		client := server.Client()
		mustSet(t, client, "key", "a\r\n\x00\xffb")
		if got := client.Get(t.Context(), "key").Val(); got != "a\r\n\x00\xffb" {
			t.Errorf("read %q", got)
		}
		if another := server.Client(); another == client {
			t.Error("the same client was returned twice")
		}
	})
}

func TestServersAreDistinct(t *testing.T) {
	one, other := redistest.Start(t), redistest.Start(t)
	mustSet(t, one.Client(), "key", "value")
	if n := other.Client().Exists(t.Context(), "key").Val(); n != 0 {
		t.Error("a key set in one server is in the other")
	}
}

func TestServerVersion(t *testing.T) {
	eachServer(t, func(t *testing.T, opts ...redistest.Option) {
		name, version := redistest.Start(t, opts...).Version()
		if len(opts) > 0 && name != "valkey" {
			t.Errorf("name %q, want valkey", name)
		}
		if name != "redis" && name != "valkey" {
			t.Errorf("unknown name %q", name)
		}
		var major, minor, patch int
		if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
			t.Errorf("version %q: %v", version, err)
		}
	})
}

func TestServerConfig(t *testing.T) {
	server := redistest.Start(t, redistest.Config("--maxmemory", "10mb"))
	client := server.Client()
	if got := client.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]; got != "10485760" {
		t.Errorf("maxmemory is %q as started", got)
	}
	server.Config(t, "maxmemory", "20971520")
	if got := client.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]; got != "20971520" {
		t.Errorf("maxmemory is %q as set", got)
	}
	if got := client.ConfigGet(t.Context(), "bind").Val()["bind"]; got != "127.0.0.1" {
		t.Errorf("bound to %q", got)
	}
}

func TestServerReplica(t *testing.T) {
	eachServer(t, func(t *testing.T, opts ...redistest.Option) {
		master := redistest.Start(t, opts...)
		mustSet(t, master.Client(), "before", "1")
		replica := redistest.Start(t, append(opts, redistest.ReplicaOf(master))...).Client()
		if got := replica.Get(t.Context(), "before").Val(); got != "1" {
			t.Errorf("the replica was returned before its first copy: read %q", got)
		}
		mustSet(t, master.Client(), "after", "2")
		redistest.Eventually(t, patience, func() bool {
			return replica.Get(t.Context(), "after").Val() == "2"
		}, "the replica does not follow")
	})
}

func TestServerRestartLosesData(t *testing.T) {
	for name, end := range map[string]func(*redistest.Server){
		"running": func(*redistest.Server) {},
		"stopped": (*redistest.Server).Stop,
		"killed":  (*redistest.Server).Kill,
		"paused":  (*redistest.Server).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			addr := server.Addr()
			mustSet(t, server.Client(), "key", "value")

			end(server)
			if name == "stopped" || name == "killed" {
				_, err := net.DialTimeout("tcp", addr, time.Second)
				if err == nil {
					t.Error("the server still accepts connections")
				}
			}
			server.Restart()
			if server.Addr() != addr {
				t.Errorf("moved from %s to %s", addr, server.Addr())
			}
			n, err := server.Client().DBSize(t.Context()).Result()
			if n != 0 || err != nil {
				t.Errorf("%d keys after the restart (error %v)", n, err)
			}
		})
	}
}

func TestServerPause(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, ReadTimeout: 100 * time.Millisecond})
	t.Cleanup(func() { _ = client.Close() })
	mustSet(t, client, "key", "before")

	server.Pause()
	err := client.Set(t.Context(), "key", "paused", 0).Err()
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a paused server gave %v, not a timeout", err)
	}
	server.Resume()
	redistest.Eventually(t, patience, func() bool {
		return client.Get(t.Context(), "key").Val() == "paused"
	}, "what was sent to the paused server was not executed")
}

func TestServerStopsWithTest(t *testing.T) {
	before := runtime.NumGoroutine()
	var addrs []string
	begin := time.Now()
	t.Run("servers", func(t *testing.T) {
		one, other := redistest.Start(t), redistest.Start(t)
		one.ClientCommands()
		other.Pause()
		addrs = append(addrs, one.Addr(), other.Addr())
	})
	if elapsed := time.Since(begin); elapsed > 4*time.Second {
		t.Errorf("stopping a paused server took force, after %v", elapsed)
	}
	for _, addr := range addrs {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_ = conn.Close()
			t.Errorf("the server at %s has outlived its test", addr)
		}
	}
	assertGoroutines(t, before)
}

func TestServerFindsAnotherPort(t *testing.T) {
	taken := redistest.Start(t)
	offers := []string{taken.Addr(), taken.Addr()}
	server := redistest.Start(t, redistest.OfferPorts(&offers))
	if len(offers) != 0 {
		t.Errorf("the ports on offer were not tried: %v", offers)
	}
	if server.Addr() == taken.Addr() {
		t.Error("another server was taken for the one started")
	}
	mustSet(t, server.Client(), "key", "value")
}

func TestServerCountsCommands(t *testing.T) {
	eachServer(t, func(t *testing.T, opts ...redistest.Option) {
		server := redistest.Start(t, opts...)
		client := server.Client()
		ctx := t.Context()
		// The client has one pool for commands and another for pipelines, whose
		// connections greet the server.
		mustSet(t, client, "warm", "up")
		if _, err := client.Pipelined(ctx, func(p redis.Pipeliner) error { return p.Ping(ctx).Err() }); err != nil {
			t.Fatal(err)
		}

		const body = `redis.call("SET", KEYS[1], 1); redis.call("INCR", KEYS[1]); return redis.call("GET", KEYS[1])`
		calls, commands := server.CommandCount(), server.ClientCommands()
		if commands != 0 {
			t.Errorf("the first count is %d", commands)
		}
		steps := []struct {
			name string
			want int64
			do   func() error
		}{
			{"a command", 1, func() error { return client.Set(ctx, "key", "a \"b\"\r\nlua] [0 lua]", 0).Err() }},
			{"a script by EVAL", 1, func() error { return client.Eval(ctx, body, []string{"script"}).Err() }},
			{"a script by EVALSHA", 1, func() error {
				return client.EvalSha(ctx, redis.NewScript(body).Hash(), []string{"script"}).Err()
			}},
			{"a pipeline", 2, func() error {
				_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
					p.Get(ctx, "key")
					p.Get(ctx, "script")
					return nil
				})
				return err
			}},
			{"a transaction", 4, func() error {
				_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.Get(ctx, "key")
					p.Get(ctx, "script")
					return nil
				})
				return err
			}},
			{"nothing", 0, func() error { server.Version(); server.CommandCount(); return nil }},
		}
		for _, step := range steps {
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			now := server.ClientCommands()
			if now-commands != step.want {
				t.Errorf("%s counts as %d commands, want %d", step.name, now-commands, step.want)
			}
			commands = now
		}

		after := server.CommandCount()
		for command, want := range map[string]int64{
			"set": 3, "incr": 2, "get": 6, "eval": 1, "evalsha": 1, "multi": 1, "exec": 1, "mget": 0,
		} {
			if got := after[command] - calls[command]; got != want {
				t.Errorf("the server has called %s %d times, want %d", command, got, want)
			}
		}
	})
}

func TestServerCountsAnewAfterRestart(t *testing.T) {
	server := redistest.Start(t)
	server.ClientCommands()
	mustSet(t, server.Client(), "key", "value")
	server.Restart()
	if n := server.ClientCommands(); n != 0 {
		t.Errorf("the first count after a restart is %d", n)
	}
	client := server.Client()
	mustSet(t, client, "warm", "up")
	before := server.ClientCommands()
	mustSet(t, client, "key", "value")
	if n := server.ClientCommands() - before; n != 1 {
		t.Errorf("a command counts as %d", n)
	}
}

// TestServerDiesWithProcess kills a process that has started a server.
func TestServerDiesWithProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends children with their parent")
	}
	if os.Getenv("REDISTEST_ORPHAN") != "" {
		fmt.Printf("orphan %s\n", redistest.Start(t).Addr())
		select {}
	}
	redistest.Start(t) // or skip, if there is no server

	command := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithProcess$")
	command.Env = append(os.Environ(), "REDISTEST_ORPHAN=1")
	// Killed, it does not get to remove its temporary directories.
	command.Env = append(command.Env, "TMPDIR="+t.TempDir())
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })

	var addr string
	for lines := bufio.NewScanner(output); addr == "" && lines.Scan(); {
		_, addr, _ = strings.Cut(lines.Text(), "orphan ")
	}
	orphan := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	t.Cleanup(func() { _ = orphan.Close() })
	if err := orphan.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("server of the other process, at %q: %v", addr, err)
	}
	_ = command.Process.Kill()
	_ = command.Wait()
	redistest.Eventually(t, patience, func() bool {
		return orphan.Ping(context.Background()).Err() != nil
	}, "the server has outlived the process that started it")
}

func mustSet(t *testing.T, client redis.Cmdable, key, value string) {
	t.Helper()

	err := client.Set(t.Context(), key, value, 0).Err()
	if err != nil {
		t.Fatalf("SET %s: %v", key, err)
	}
}

// assertGoroutines waits until no more goroutines run than did before.
func assertGoroutines(t *testing.T, before int) {
	t.Helper()

	redistest.Eventually(t, patience, func() bool { return runtime.NumGoroutine() <= before }, "goroutines are left")
}
