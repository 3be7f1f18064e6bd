//go:build unix

package redistest

import "syscall"

func (p *process) terminate() error { return p.command.Process.Signal(syscall.SIGTERM) }
func (p *process) pause() error     { return p.command.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error    { return p.command.Process.Signal(syscall.SIGCONT) }
