package dedupe_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// An event may be told of a lease while it waits for the rest of its keys.
func TestEventsWhileASecondKeyIsWaitedFor(t *testing.T) {
	for i := range 20 {
		atGates(t, 1, func(t *testing.T, stores []*spy) {
			j := new(journal)
			both := transfers(t, stores[0], dedupe.WithWait(time.Minute), j.observe())
			single := serialize(t, stores[0], dedupe.WithWait(time.Minute))
			stores[0].intercept(func(_ context.Context, v visit) error {
				if v.verb == extend {
					return errors.Join(dedupe.ErrStoreUnavailable, errDown)
				}
				return nil
			}, nil)
			awaited, held := fmt.Sprint(i), fmt.Sprint(100+i)
			var results []<-chan error
			for _, d := range []time.Duration{time.Second, 9 * time.Second} {
				results = append(results, ask(awaited).doing(lasting(d)).start(single))
				synctest.Wait()
			}
			results = append(results, ask(awaited, held).start(both))
			allProceeded(t, results) // the key comes when the other one's first renewal fails
		})
	}
}
