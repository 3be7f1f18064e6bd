//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// process is a bank in a process of its own.
type process struct {
	t       *testing.T
	command *exec.Cmd
	at      addresses
	url     string
	ended   chan struct{}
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, command: exec.Command(os.Args[0], append([]string{"-story=false", "-http", "127.0.0.1:0"}, args...)...), ended: make(chan struct{})}
	p.command.Env = append(os.Environ(), asBank+"=1")
	var stderr strings.Builder
	p.command.Stderr = &stderr
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("stderr of %s: %s", p.url, &stderr)
		}
	})
	lines := bufio.NewScanner(stdout)
	listens := false
	for !listens && lines.Scan() {
		p.at, listens = parseListening(lines.Text())
	}
	p.url = "http://" + p.at.http
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		_ = p.command.Wait() // how it ended is in its ProcessState
		close(p.ended)
	}()
	if !listens {
		t.Fatal("the bank does not listen")
	}
	return p
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns how the process ended.
func (p *process) wait() *os.ProcessState {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end", p.url)
	}
	return p.command.ProcessState
}

// stopsListening waits until the process takes no connections any more.
func (p *process) stopsListening() {
	p.t.Helper()
	for _, address := range []string{p.at.http, p.at.echo, p.at.grpc} {
		eventually(p.t, "the bank takes no more connections on "+address, func() bool {
			connection, err := net.Dial("tcp", address)
			if err == nil {
				_ = connection.Close()
			}
			return errors.Is(err, syscall.ECONNREFUSED)
		})
	}
}

// held reports whether n keys are held.
func held(t *testing.T, client *redis.Client, n int) bool {
	t.Helper()
	keys, err := client.Keys(t.Context(), "bank:guards:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return len(keys) == n
}

// meanwhile sends a request while the test goes on.
func meanwhile(ctx context.Context, url, order string, headers ...string) <-chan reply {
	answered := make(chan reply, 1)
	go func() { answered <- send(ctx, "POST", url, order, headers...) }()
	return answered
}

func TestTwoProcessesLoseNothing(t *testing.T) {
	server := redistest.Start(t)
	for _, test := range []struct {
		flags []string
		want  string // part of the account
	}{
		{[]string{"-work", "500ms"}, `"balance":500,"executions":2`},
		{[]string{"-work", "500ms", "-unguarded"}, `"balance":[78]00,"executions":2`},
	} {
		if err := server.Client().FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		flags := append([]string{"-redis", server.URL(), "-wait", "30s"}, test.flags...)
		one, two := start(t, flags...), start(t, flags...)
		answers := []<-chan reply{
			meanwhile(t.Context(), one.url+"/accounts/A/withdraw", `{"amount":200}`),
			meanwhile(t.Context(), two.url+"/accounts/A/withdraw", `{"amount":300}`),
		}
		for _, answer := range answers {
			if r := <-answer; r.err != nil || r.status != 201 {
				t.Errorf("%q: %d %s %v", test.flags, r.status, r.body, r.err)
			}
		}
		for _, p := range []*process{one, two} {
			if r := send(t.Context(), "GET", p.url+"/accounts/A", ""); !matches(test.want, r.body) {
				t.Errorf("%q: %s, want %s", test.flags, r.body, test.want)
			}
		}
	}
}

func TestTwoProcessesPayOnce(t *testing.T) {
	server := redistest.Start(t)
	flags := []string{"-redis", server.URL(), "-wait", "30s"}
	banks := []*process{start(t, flags...), start(t, flags...)}
	const requests = 20
	replies := make([]reply, requests)
	var sending sync.WaitGroup
	for i := range requests {
		sending.Go(func() {
			replies[i] = send(t.Context(), "POST", banks[i%2].url+"/accounts/A/transfer", `{"to":"B","amount":100}`,
				"Idempotency-Key", "01981f6e-6f1c-7c3e-9a53-2f0f4d1f9c11", "Authorization", "Bearer anna")
		})
	}
	sending.Wait()
	replays := 0
	for _, r := range replies {
		if r.err != nil || r.status != 201 || r.body != `{"transaction":1,"account":"A","balance":900}` || r.header.Get("Location") != "/transactions/1" {
			t.Errorf("%d %s %v %v", r.status, r.body, r.header, r.err)
		}
		if r.header.Get("Idempotent-Replayed") == "true" {
			replays++
		}
	}
	if replays != requests-1 {
		t.Errorf("%d replays", replays)
	}
	for _, p := range banks {
		wantAccount(t, p.url, "A", `{"account":"A","balance":900,"executions":1}`)
		wantAccount(t, p.url, "B", `{"account":"B","balance":1100,"executions":1}`)
	}
}

func TestSecondProcessFindsTheBalances(t *testing.T) {
	server := redistest.Start(t)
	one := start(t, "-redis", server.URL())
	if r := send(t.Context(), "POST", one.url+"/accounts/A/withdraw", `{"amount":200}`); r.status != 201 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	two := start(t, "-redis", server.URL())
	wantAccount(t, two.url, "A", `{"account":"A","balance":800,"executions":1}`)
	wantAccount(t, two.url, "B", `{"account":"B","balance":1000,"executions":0}`)
}

// A process that is told to stop answers what it has begun, and the account stays locked until it
// has: the withdrawal at the other process neither overtakes it nor is lost.
func TestStopsInOrder(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			server := redistest.Start(t)
			client := server.Client()
			one := start(t, "-redis", server.URL(), "-work", "1500ms", "-lease", "300ms")
			two := start(t, "-redis", server.URL(), "-work", "0", "-wait", "0")
			three := start(t, "-redis", server.URL(), "-work", "0", "-wait", "30s")

			begun := meanwhile(t.Context(), one.url+"/accounts/A/withdraw", `{"amount":200}`, "Idempotency-Key", "k")
			eventually(t, "the first withdrawal runs", func() bool { return held(t, client, 2) })
			one.signal(s)
			one.stopsListening()
			refused := send(t.Context(), "POST", two.url+"/accounts/A/withdraw", `{"amount":300}`)
			second := meanwhile(t.Context(), three.url+"/accounts/A/withdraw", `{"amount":300}`)

			if r := <-begun; r.err != nil || r.status != 201 || r.body != `{"transaction":1,"account":"A","balance":800}` {
				t.Errorf("the first: %d %s %v", r.status, r.body, r.err)
			}
			wantProblem(t, refused, 409, "resource-locked")
			if r := <-second; r.err != nil || r.status != 201 || r.body != `{"transaction":2,"account":"A","balance":500}` {
				t.Errorf("the second: %d %s %v", r.status, r.body, r.err)
			}
			if state := one.wait(); state.ExitCode() != 0 {
				t.Errorf("ended with %v", state)
			}
			wantAccount(t, two.url, "A", `{"account":"A","balance":500,"executions":2}`)

			again := send(t.Context(), "POST", two.url+"/accounts/A/withdraw", `{"amount":200}`, "Idempotency-Key", "k")
			if again.body != `{"transaction":1,"account":"A","balance":800}` || again.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("again: %d %s", again.status, again.body)
			}
		})
	}
}

func TestSecondSignalKills(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	p := start(t, "-redis", server.URL(), "-work", "10m")
	begun := meanwhile(t.Context(), p.url+"/accounts/A/withdraw", `{"amount":200}`)
	eventually(t, "the withdrawal runs", func() bool { return held(t, client, 1) })
	p.signal(syscall.SIGTERM)
	p.stopsListening()
	p.signal(syscall.SIGTERM)
	if status, ok := p.wait().Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
		t.Errorf("ended with %v", p.command.ProcessState)
	}
	if r := <-begun; r.err == nil {
		t.Errorf("answered: %d %s", r.status, r.body)
	}
}
