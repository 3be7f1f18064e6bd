package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

const (
	// gracePeriod is how long a server may take to leave on its own accord.
	gracePeriod = 5 * time.Second

	// logTail is how many bytes of a server's log a failure quotes.
	logTail = 4096
)

// process is one run of a server binary.
type process struct {
	command *exec.Cmd
	log     string
	exited  chan struct{}
}

// launch runs binary in dir, and appends what it prints to the log there.
//
// The kernel ends the child when the thread that started it dies (see
// processAttributes), which need not be when the process does: the thread of a
// goroutine that exits while locked to it dies as well. So the thread is locked
// to a goroutine that outlives the child.
func launch(binary, dir, log string, args []string) (*process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }()

	command := exec.Command(binary, args...)
	command.Dir = dir
	command.Stdout = output
	command.Stderr = output
	command.SysProcAttr = processAttributes()

	p := &process{command: command, log: log, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)

		err := command.Start()
		started <- err
		if err == nil {
			// How it ended is of no interest: most are killed.
			_ = command.Wait()
		}
	}()

	return p, <-started
}

// running reports whether the process has not exited, which it has not while it
// is merely paused.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop asks the process to leave and insists after the grace period.
func (p *process) stop() error {
	// A paused process acts on nothing else.
	err := ignoreExited(p.resume())
	if err != nil {
		return err
	}
	err = ignoreExited(p.terminate())
	if err != nil {
		return err
	}

	grace := time.NewTimer(gracePeriod)
	defer grace.Stop()
	select {
	case <-p.exited:
		return nil
	case <-grace.C:
		return p.kill()
	}
}

// kill ends the process without notice and returns when it is gone.
func (p *process) kill() error {
	err := ignoreExited(p.command.Process.Kill())
	if err != nil {
		return err
	}
	<-p.exited

	return nil
}

// tail returns the end of the log, for a failure's message.
func (p *process) tail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	if len(content) > logTail {
		content = content[len(content)-logTail:]
	}

	return strings.TrimSpace(string(content))
}

func ignoreExited(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
