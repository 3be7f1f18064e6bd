//go:build !linux

package redistest

import "syscall"

// processAttributes has nothing to set: only Linux ends a child with its parent.
func processAttributes() *syscall.SysProcAttr { return nil }

// stopped takes a process that was told to stop for one that has.
func (p *process) stopped() (bool, error) { return true, nil }
