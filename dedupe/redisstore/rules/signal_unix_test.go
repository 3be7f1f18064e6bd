//go:build unix

package rules

import (
	"syscall"
	"testing"
)

// pause stops the process where it is: it does not notice, and its connections stay open.
func (c *child) pause(t *testing.T) {
	t.Helper()
	succeed(t, c.command.Process.Signal(syscall.SIGSTOP))
}

// resume lets a paused process go on.
func (c *child) resume(t *testing.T) {
	t.Helper()
	succeed(t, c.command.Process.Signal(syscall.SIGCONT))
}
