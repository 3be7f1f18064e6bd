// Package clock tells the time that all processes of one machine agree on.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Go's monotonic clock counts from the start of the process; the two origins tie it to that of the
// machine. Both are CLOCK_MONOTONIC, so they never drift apart.
var (
	here    = time.Now()
	machine = read()
)

// Now returns CLOCK_MONOTONIC in nanoseconds. Times of different processes can be compared.
func Now() int64 { return machine + int64(time.Since(here)) }

// Until returns how long it is until at.
func Until(at int64) time.Duration { return time.Duration(at - Now()) }

func read() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("clock: " + err.Error())
	}
	return t.Nano()
}
