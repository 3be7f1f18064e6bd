package redistest

import (
	"fmt"
	"testing"
	"time"
)

// pollInterval is the pause between two looks at a condition: short next to
// anything that a test waits for, long next to the cost of a look.
const pollInterval = 5 * time.Millisecond

// Eventually calls cond, in the caller's goroutine, until it returns true, and
// ends the test with msg when it has not done so within the given time. The
// time is a bound on failure only, so it can be generous.
func Eventually(tb testing.TB, within time.Duration, cond func() bool, msg string) {
	tb.Helper()

	err := poll(within, func() (bool, error) { return cond(), nil })
	if err != nil {
		tb.Fatalf("%s: %v", msg, err)
	}
}

// poll calls attempt until it is done, and returns its error then. When that is
// not within the given time it returns an error that wraps attempt's last one.
func poll(within time.Duration, attempt func() (done bool, err error)) error {
	deadline := time.Now().Add(within)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()

	for {
		done, err := attempt()
		switch {
		case done:
			return err
		case time.Now().Before(deadline):
			<-ticker.C
		case err != nil:
			return fmt.Errorf("not within %v: %w", within, err)
		default:
			return fmt.Errorf("not within %v", within)
		}
	}
}
