package redistest

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// processAttributes makes the kernel kill a child when the thread that started
// it dies, so that a test binary which crashes or is killed leaves no server.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether the process has come to a halt: a signal is only
// queued when the call that sends it returns.
func (p *process) stopped() (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		return false, err
	}
	// The state follows the command's name, which is in parentheses and may
	// contain some.
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))

	return bytes.HasPrefix(state, []byte("T")), nil
}
