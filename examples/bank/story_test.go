package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

var wholeStory = regexp.MustCompile(`(?s)^3 replicas.*
story +guards +requests +executions +replays +distinct answers +balance
200 and 300 withdrawn at once +no +2 +2 +0 +2 +([0-9]+)
200 and 300 withdrawn at once +yes +2 +2 +0 +2 +500
one payment of 100, sent 20 times +yes +20 +1 +19 +1 +900

unguarded balance: ([0-9]+)
guarded balance: 500
$`)

// play runs the bank with -exit and returns the unguarded balance.
func play(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), append([]string{"-exit"}, args...), &stdout, &stderr)
	found := wholeStory.FindStringSubmatch(stdout.String())
	if status != 0 || found == nil || found[1] != found[2] {
		t.Fatalf("exit status %d\n%s%s", status, &stdout, &stderr)
	}
	if stderr.Len() > 0 {
		t.Errorf("stderr: %s", &stderr)
	}
	return found[2]
}

func TestStory(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"-wait", "0"},
		{"-wait", "0", "-work", "300ms", "-lease", "300ms", "-retain", "1s"},
		{"-unguarded"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if balance := play(t, args...); balance != "700" && balance != "800" {
				t.Errorf("unguarded balance: %s", balance)
			}
		})
	}
	t.Run("without work", func(t *testing.T) {
		// Whether withdrawals overlap that take no time is a matter of luck, with guards it is not.
		switch balance := play(t, "-work", "0", "-wait", "0"); balance {
		case "500", "700", "800":
		default:
			t.Errorf("unguarded balance: %s", balance)
		}
	})
}

func TestStoryOnOtherRedises(t *testing.T) {
	t.Run("cluster", func(t *testing.T) {
		addresses := redistest.StartCluster(t, 3).Addrs()
		play(t, "-redis", "redis+cluster://"+addresses[0]+"?addr="+addresses[1])
	})
	t.Run("sentinel", func(t *testing.T) {
		s := redistest.StartSentinel(t)
		play(t, "-redis", "redis+sentinel://"+s.Addrs()[0]+"?master_name="+s.MasterName())
	})
}

// What a Redis has is neither changed by the story nor added to for long.
func TestStoryLeavesNothing(t *testing.T) {
	bank := open(t, quick())
	url, redis := bank.http, bank.redis
	if r := send(t.Context(), "POST", url+"/accounts/A/withdraw", `{"amount":200}`); r.status != 201 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	before := strings.Join(redis.Keys(), "\n")
	play(t, "-redis", "redis://"+redis.Addr())

	for id, want := range map[string]string{
		"A": `{"account":"A","balance":800,"executions":1}`,
		"B": `{"account":"B","balance":1000,"executions":0}`,
		"C": `{"account":"C","balance":1000,"executions":0}`,
	} {
		wantAccount(t, url, id, want)
	}
	for _, key := range redis.Keys() {
		if !strings.Contains(before, key) && (redis.TTL(key) <= 0 || !strings.Contains(key, ":guards:")) {
			t.Errorf("left behind: %s, TTL %v", key, redis.TTL(key))
		}
	}
}

// What a story puts into Redis goes by itself if it has to, and at once if it is interrupted.
func TestStoryThatBreaksOff(t *testing.T) {
	redis := miniredis.RunT(t)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		ended <- run(ctx, []string{"-exit", "-work", "200ms", "-redis", "redis://" + redis.Addr()}, io.Discard, &stderr)
	}()
	eventually(t, "money has moved", func() bool {
		return slices.ContainsFunc(redis.Keys(), func(key string) bool {
			number, _ := redis.Get(key)
			return strings.HasSuffix(key, ":transactions:all") && number != "0"
		})
	})
	for _, key := range redis.Keys() {
		if redis.TTL(key) <= 0 && redis.Exists(key) {
			t.Errorf("%s has no TTL", key)
		}
	}
	interrupt()
	if status := <-ended; status != 1 || !strings.Contains(stderr.String(), "story: ") {
		t.Errorf("exit status %d, stderr: %s", status, &stderr)
	}
	if keys := redis.Keys(); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// serving runs the bank in this process until stop is called, and returns what it said before it
// began to serve.
func serving(t *testing.T, args ...string) (said []string, at addresses, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	r, w := io.Pipe()
	go func() {
		ended <- run(ctx, append([]string{"-http", "127.0.0.1:0"}, args...), w, &stderr)
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	listens := false
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "go run ") {
		said = append(said, lines.Text())
		if told, found := parseListening(lines.Text()); found {
			at, listens = told, true
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	stop = func() int {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		status := <-ended
		if stderr.Len() > 0 {
			t.Errorf("stderr: %s", &stderr)
		}
		return status
	}
	if !listens {
		t.Fatalf("exit status %d, stdout: %q", stop(), said)
	}
	return said, at, stop
}

func TestServesAfterTheStory(t *testing.T) {
	said, at, stop := serving(t)
	url := "http://" + at.http
	if text := strings.Join(said, "\n"); !strings.Contains(text, "\nguarded balance: 500\n") {
		t.Errorf("no story: %s", text)
	}
	for _, id := range accountIDs {
		wantAccount(t, url, id, `{"account":"`+id+`","balance":1000,"executions":0}`)
	}

	var lines []string
	for _, line := range said {
		if strings.HasPrefix(line, "curl ") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 3 {
		t.Fatalf("%d lines to try: %q", len(lines), lines)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("curl is not installed: its lines are not tried")
	} else {
		for _, try := range []struct{ line, body, header string }{
			{lines[0], `{"transaction":1,"account":"A","balance":800}`, "Location: /transactions/1"},
			{lines[0], `{"transaction":1,"account":"A","balance":800}`, "Idempotent-Replayed: true"},
			{lines[1], `{"transaction":2,"account":"A","balance":500}`, "Location: /transactions/2"},
			{lines[2], `{"account":"A","balance":500,"executions":2}`, "Content-Type: application/json"},
		} {
			out, err := exec.CommandContext(t.Context(), "sh", "-c", try.line).Output()
			if text := string(out); err != nil || !strings.Contains(text, try.body) || !strings.Contains(text, try.header) {
				t.Errorf("%s\n%s%v", try.line, text, err)
			}
		}
	}
	if status := stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, address := range []string{at.http, at.echo, at.grpc} {
		if connection, err := net.Dial("tcp", address); err == nil {
			t.Errorf("still serves on %s", connection.RemoteAddr())
		}
	}
}

func TestServesOnly(t *testing.T) {
	said, at, stop := serving(t, "-story=false", "-unguarded")
	url := "http://" + at.http
	if text := strings.Join(said, "\n"); strings.Contains(text, "balance:") {
		t.Errorf("a story: %s", text)
	}
	const withdraw, order = "/accounts/A/withdraw", `{"amount":200}`
	for range 2 {
		if r := send(t.Context(), "POST", url+withdraw, order, "Idempotency-Key", "k"); r.status != 201 || r.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("guarded: %d %s", r.status, r.body)
		}
	}
	wantAccount(t, url, "A", `{"account":"A","balance":600,"executions":2}`)
	if status := stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		args   string
		says   []string
		secret string
	}{
		{args: "-lease 5", says: []string{"-lease", `"5"`, "from 50ms to 15m0s, such as 30s"}},
		{args: "-lease 49ms", says: []string{"-lease", `"49ms"`, "from 50ms to 15m0s"}},
		{args: "-lease 16m", says: []string{"-lease", `"16m"`, "from 50ms to 15m0s"}},
		{args: "-wait -1s", says: []string{"-wait", `"-1s"`, "from 0s to 10m0s"}},
		{args: "-wait 11m", says: []string{"-wait", `"11m"`, "from 0s to 10m0s"}},
		{args: "-retain 999ms", says: []string{"-retain", `"999ms"`, "from 1s to 2160h0m0s"}},
		{args: "-work soon", says: []string{"-work", `"soon"`, "from 0s to 10m0s"}},
		{args: "-work", says: []string{"-work", "needs an argument"}},
		{args: "-http nowhere", says: []string{"-http", `"nowhere"`, "such as 127.0.0.1:8080"}},
		{args: "-http 127.0.0.1:65536", says: []string{"-http", `"127.0.0.1:65536"`, "0 to 65535"}},
		{args: "-http 127.0.0.1", says: []string{"-http", `"127.0.0.1"`, "such as 127.0.0.1:8080"}},
		{args: "-echo nowhere", says: []string{"-echo", `"nowhere"`, "such as 127.0.0.1:0", "not to serve Echo"}},
		{args: "-echo 127.0.0.1:port", says: []string{"-echo", `"127.0.0.1:port"`, "0 to 65535"}},
		{args: "-grpc 127.0.0.1", says: []string{"-grpc", `"127.0.0.1"`, "such as 127.0.0.1:0", "not to serve gRPC"}},
		{args: "-grpc 127.0.0.1:-1", says: []string{"-grpc", `"127.0.0.1:-1"`, "0 to 65535"}},
		{args: "-redis http://u:s3cret@host", says: []string{"-redis", "http://host", "redis://localhost:6379"}, secret: "s3cret"},
		{args: "-redis redis://u:s3cret@[::1", says: []string{"-redis", "redis://localhost:6379"}, secret: "s3cret"},
		{args: "-redis redis+sentinel://host", says: []string{"-redis", "redis+sentinel://host", "master_name"}},
		{args: "-story=maybe", says: []string{"-story", `"maybe"`, "-h"}},
		{args: "-story=false -exit", says: []string{"-story=false", "-exit", "leave one"}},
		{args: "-speed 9", says: []string{"-speed", "-h"}},
		{args: "serve", says: []string{`"serve"`, "-h"}},
	} {
		t.Run(test.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if status := run(t.Context(), strings.Fields(test.args), &stdout, &stderr); status != 2 || stdout.Len() > 0 {
				t.Errorf("exit status %d, stdout: %s", status, &stdout)
			}
			for _, text := range test.says {
				if !strings.Contains(stderr.String(), text) {
					t.Errorf("does not say %s: %s", text, &stderr)
				}
			}
			if test.secret != "" && strings.Contains(stderr.String(), test.secret) {
				t.Errorf("tells the password: %s", &stderr)
			}
		})
	}
	t.Run("-h", func(t *testing.T) {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), []string{"-h"}, &stdout, &stderr); status != 0 || stderr.Len() > 0 {
			t.Errorf("exit status %d, stderr: %s", status, &stderr)
		}
		for _, flag := range []string{"-http", "-echo", "-grpc", "-redis", "-lease", "-wait", "-retain", "-work", "-unguarded", "-story", "-exit"} {
			if !strings.Contains(stdout.String(), "\n  "+flag) {
				t.Errorf("%s is missing:\n%s", flag, &stdout)
			}
		}
	})
}

func TestCannotStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	gone := miniredis.RunT(t)
	address := gone.Addr()
	gone.Close()

	for _, test := range []struct{ args, says string }{
		{"-http " + taken.Addr().String(), "-http \"" + taken.Addr().String() + "\""},
		{"-http 127.0.0.1:0 -echo " + taken.Addr().String(), "-echo \"" + taken.Addr().String() + "\""},
		{"-http 127.0.0.1:0 -grpc " + taken.Addr().String(), "-grpc \"" + taken.Addr().String() + "\""},
		{"-exit -redis redis://:s3cret@" + address, "-redis redis://" + address},
		{"-story=false -http 127.0.0.1:0 -redis redis://:s3cret@" + address, "-redis redis://" + address},
	} {
		var stderr bytes.Buffer
		if status := run(t.Context(), strings.Fields(test.args), io.Discard, &stderr); status != 1 || !strings.Contains(stderr.String(), test.says) {
			t.Errorf("%s: exit status %d, stderr: %s", test.args, status, &stderr)
		}
		if strings.Contains(stderr.String(), "s3cret") {
			t.Errorf("tells the password: %s", &stderr)
		}
	}
}

// The embedded Redis forgets as any other does.
func TestEmbeddedRedisForgets(t *testing.T) {
	_, at, stop := serving(t, "-story=false", "-retain", "1s", "-work", "0")
	url := "http://" + at.http
	var r reply
	pay := func() string {
		r = send(t.Context(), "POST", url+"/accounts/A/withdraw", `{"amount":200}`, "Idempotency-Key", "k")
		return r.header.Get("Idempotent-Replayed")
	}
	pay()
	if pay() != "true" {
		t.Errorf("not replayed: %d %s %v", r.status, r.body, r.err)
	}
	eventually(t, "the answer is forgotten", func() bool { return pay() == "" })
	if r.body != `{"transaction":2,"account":"A","balance":600}` {
		t.Errorf("%d %s %v", r.status, r.body, r.err)
	}
	if status := stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
