package rules

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The test binary is started again for tests that need other processes. These variables say what
// it is to be then.
const (
	roleVariable = "INTERLOCK_RULES_ROLE"
	taskVariable = "INTERLOCK_RULES_TASK"
)

// roles are what a child process can be. It is told a task in JSON, hears its parent on stdin and
// tells it on stdout, line by line. It ends with its role, or with its parent.
var roles = map[string]func(task []byte, hear <-chan string, tell func(format string, args ...any)){
	"owner":   playOwner,
	"holder":  playHolder,
	"counter": playCounter,
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		play(roles[role])
		return
	}
	redis.SetLogger(quiet{}) // it has much to say about what these tests do to it
	flag.Parse()
	must(flag.Set("test.parallel", "6")) // most tests wait for leases to end, which needs no processor
	os.Exit(m.Run())
}

// quiet is a logger of go-redis.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func play(role func([]byte, <-chan string, func(string, ...any))) {
	hear := make(chan string)
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			hear <- lines.Text()
		}
		os.Exit(0) // the parent is gone
	}()
	var mu sync.Mutex
	role([]byte(os.Getenv(taskVariable)), hear, func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	})
}

// must is for children, which have nobody to report to but their parent's test log.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

// child is another process.
type child struct {
	command *exec.Cmd
	stdin   io.Writer
	told    chan string // closed when the process has ended
}

// startChild runs a role until the end of the test at the latest.
func startChild(t *testing.T, role string, task any) *child {
	t.Helper()
	text, err := json.Marshal(task)
	succeed(t, err)
	c := &child{command: exec.CommandContext(t.Context(), os.Args[0]), told: make(chan string, 1024)}
	c.command.Env = append(os.Environ(), roleVariable+"="+role, taskVariable+"="+string(text))
	c.command.Stderr = os.Stderr
	c.stdin, err = c.command.StdinPipe()
	succeed(t, err)
	stdout, err := c.command.StdoutPipe()
	succeed(t, err)
	succeed(t, c.command.Start())

	go func() {
		defer close(c.told)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			c.told <- lines.Text()
		}
		_ = c.command.Wait() // how it ended is of no interest: most are killed
	}()
	t.Cleanup(c.kill)
	return c
}

// kill ends the process with SIGKILL, paused or not, and returns when it is gone.
func (c *child) kill() {
	_ = c.command.Process.Kill()
	for range c.told { // what it still told is of no interest
	}
}

// tell sends the child a line.
func (c *child) tell(t *testing.T, line string) {
	t.Helper()
	_, err := fmt.Fprintln(c.stdin, line)
	succeed(t, err)
}

// ask sends the child a line and returns its answer.
func (c *child) ask(t *testing.T, line string) string {
	t.Helper()
	c.tell(t, line)
	return c.heard(t, line)
}

// heard returns what follows the word with which the child's next line has to begin.
func (c *child) heard(t *testing.T, word string) string {
	t.Helper()
	select {
	case line, ok := <-c.told:
		rest, found := strings.CutPrefix(line, word)
		if !ok || !found {
			t.Fatalf("the child told %q, want %q", line, word)
		}
		return strings.TrimSpace(rest)
	case <-time.After(patience):
		t.Fatalf("the child did not tell %q within %v", word, patience)
		panic("unreachable")
	}
}
