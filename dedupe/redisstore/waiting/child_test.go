package waiting

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// taskVariable makes the test binary, when it is started again, one of the processes that wait.
const taskVariable = "INTERLOCK_WAITING_TASK"

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{}) // it has much to say about what these tests do to it
	if task := os.Getenv(taskVariable); task != "" {
		serve([]byte(task))
		return
	}
	flag.Parse()
	must(flag.Set("test.parallel", "8")) // most tests wait for leases to end, which needs no processor
	os.Exit(m.Run())
}

// quiet is a logger of go-redis.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// task is what a child process is.
type task struct {
	Site  site
	Lease int64 // in ns
}

// order is what a child is told.
type order struct {
	ID      int
	Do      string // "begin", "end" or "leave"
	Request request
	Result  string
}

// event is what a child tells.
type event struct {
	ID    int
	Fence uint64 // of the attempt, now that it has the key; 0 when it has ended
	End   end
}

// serve is the life of a child: it begins attempts, ends them as it is told, and tells what becomes of
// them. It ends with its parent.
func serve(text []byte) {
	var t task
	must(json.Unmarshal(text, &t))
	m := newMember(t.Site.store(nil), t.Lease)
	attempts := make(map[int]*attempt)
	var mu sync.Mutex
	tell := func(e event) {
		line, err := json.Marshal(e)
		must(err)
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(string(line))
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var o order
		must(json.Unmarshal(lines.Bytes(), &o))
		switch o.Do {
		case "begin":
			a := m.begin(o.Request)
			attempts[o.ID] = a
			go func() {
				for fence := range a.granted {
					tell(event{ID: o.ID, Fence: fence})
				}
				tell(event{ID: o.ID, End: <-a.ended})
			}()
		case "end":
			attempts[o.ID].finish(o.Result)
		case "leave":
			attempts[o.ID].leave()
		}
	}
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
	stdin   *json.Encoder
	gone    chan struct{} // closed when the process has ended

	mu       sync.Mutex
	attempts []*attempt
}

// startChild runs a process until the end of the test at the latest.
func startChild(t *testing.T, s site, lease int64) *child {
	t.Helper()
	text, err := json.Marshal(task{s, lease})
	succeed(t, err)
	c := &child{command: exec.CommandContext(t.Context(), os.Args[0]), gone: make(chan struct{})}
	c.command.Env = append(os.Environ(), taskVariable+"="+string(text))
	c.command.Stderr = os.Stderr
	stdin, err := c.command.StdinPipe()
	succeed(t, err)
	c.stdin = json.NewEncoder(stdin)
	stdout, err := c.command.StdoutPipe()
	succeed(t, err)
	succeed(t, c.command.Start())
	go func() {
		defer close(c.gone)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				c.hear(e)
			}
		}
		_ = c.command.Wait() // how it ended is of no interest: most are killed
	}()
	t.Cleanup(c.kill)
	return c
}

func (c *child) hear(e event) {
	c.mu.Lock()
	a := c.attempts[e.ID]
	c.mu.Unlock()
	if e.Fence != 0 {
		a.granted <- e.Fence
	} else {
		close(a.granted)
		a.ended <- e.End
	}
}

// begin makes an attempt in the process.
func (c *child) begin(r request) *attempt {
	a := newAttempt()
	c.mu.Lock()
	defer c.mu.Unlock()
	id := len(c.attempts)
	c.attempts = append(c.attempts, a)
	a.finish = func(result string) { c.send(order{ID: id, Do: "end", Result: result}) }
	a.leave = func() { c.send(order{ID: id, Do: "leave"}) }
	must(c.stdin.Encode(order{ID: id, Do: "begin", Request: r}))
	return a
}

func (c *child) send(o order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.stdin.Encode(o) // a process that is gone needs not be told
}

// kill ends the process with SIGKILL, paused or not, and returns when it is gone.
func (c *child) kill() {
	_ = c.command.Process.Kill()
	<-c.gone
}
