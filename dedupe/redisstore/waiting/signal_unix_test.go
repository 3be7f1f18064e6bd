//go:build unix

package waiting

import (
	"errors"
	"syscall"
	"testing"
)

// pause stops the process where it is: it does not notice, and its connections stay open. It returns when
// the process has come to a halt.
func (c *child) pause(t *testing.T) {
	t.Helper()
	succeed(t, c.command.Process.Signal(syscall.SIGSTOP))
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.command.Process.Pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		succeed(t, err)
		if !status.Stopped() {
			t.Fatalf("the process has ended: %v", status)
		}
		return
	}
}

// resume lets a paused process go on.
func (c *child) resume(t *testing.T) {
	t.Helper()
	succeed(t, c.command.Process.Signal(syscall.SIGCONT))
}
