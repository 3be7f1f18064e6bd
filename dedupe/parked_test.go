package dedupe_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// holding makes the first call of verb wait until let is called, and then fail with fail, if that is
// not nil. It honours the call's context.
func (s *spy) holding(v verb, fail error) (let func()) {
	gone := make(chan struct{})
	var first sync.Once
	s.intercept(func(ctx context.Context, seen visit) (err error) {
		if seen.verb != v {
			return nil
		}
		first.Do(func() {
			select {
			case <-gone:
				err = fail
			case <-ctx.Done():
				err = errors.Join(dedupe.ErrStoreUnavailable, context.Cause(ctx))
			}
		})
		return err
	}, nil)
	return func() { close(gone) }
}

// undecided checks that nobody has decided about a request yet.
func undecided(t *testing.T, results ...<-chan error) {
	t.Helper()
	synctest.Wait()
	for _, result := range results {
		select {
		case err := <-result:
			t.Fatalf("it was decided already: %v", err)
		default:
		}
	}
}

// Who does not wait for the key waits for what becomes of the first one's claim.
func TestImpatientDuringAClaim(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		atGates(t, 1, func(t *testing.T, stores []*spy) {
			g := guard(t, stores[0])
			let := stores[0].holding(claim, nil)
			first := ask("7").doing(lasting(time.Second))
			result := first.start(g)
			synctest.Wait()
			var others []<-chan error
			for range 3 {
				others = append(others, ask("7").start(g))
			}
			undecided(t, others...)
			let()
			for _, other := range others {
				mustMatch(t, <-other, dedupe.ErrConflict)
			}
			undecided(t, result)
			first.proceeded(t, <-result)
			if n := len(stores[0].seen(claim)); n != 1 {
				t.Errorf("the store saw %d claims", n)
			}
		})
	})
}

func TestImpatientDuringARelease(t *testing.T) {
	for _, fail := range []error{nil, errors.Join(dedupe.ErrStoreUnavailable, errDown)} {
		atGates(t, 1, func(t *testing.T, stores []*spy) {
			g := serialize(t, stores[0])
			let := stores[0].holding(release, fail)
			first := ask("7")
			result := first.start(g)
			undecided(t, result)
			second := ask("7")
			other := second.start(g)
			undecided(t, other)
			if fail != nil {
				stores[0].failing(release) // again and again
			}
			let()
			first.proceeded(t, <-result)
			if fail == nil {
				second.proceeded(t, <-other)
			} else {
				refused(t, <-other, dedupe.Locked)
			}
		})
	}
}

func TestImpatientDuringACompletion(t *testing.T) {
	for _, fail := range []error{nil, errors.Join(dedupe.ErrStoreUnavailable, errDown)} {
		atGates(t, 1, func(t *testing.T, stores []*spy) {
			g := once(t, stores[0])
			let := stores[0].holding(complete, fail)
			first := ask("7").answering("first")
			result := first.start(g)
			undecided(t, result)
			same, other := ask("7"), ask("7")
			other.payload.Body = []byte("other")
			sames, others := same.start(g), other.start(g)
			undecided(t, sames, others)
			let()
			first.proceeded(t, <-result)
			if fail == nil {
				same.wasReplayed(t, <-sames, "first")
			} else {
				refused(t, <-sames, dedupe.InFlight)
			}
			refused(t, <-others, dedupe.KeyReused)
			time.Sleep(time.Second)
			for _, v := range stores[0].seen(claim)[1:] {
				if v.claim.Fingerprint == stores[0].seen(claim)[0].claim.Fingerprint {
					t.Error("the store was asked though this process knew")
				}
			}
		})
	}
}

func TestMismatchIsKnownWithoutTheStore(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} {
		atGates(t, 1, func(t *testing.T, stores []*spy) {
			g := once(t, stores[0], dedupe.WithWait(wait))
			let := stores[0].holding(claim, nil)
			first := ask("7").doing(lasting(time.Second))
			result := first.start(g)
			synctest.Wait()
			for range 2 { // while the claim is on its way, and while the key is held
				other := ask("7")
				other.payload.Body = []byte("other")
				others := other.start(g)
				if let != nil {
					undecided(t, others)
					let()
					let = nil
				}
				refused(t, <-others, dedupe.KeyReused)
			}
			undecided(t, result)
			first.proceeded(t, <-result)
			stores[0].sees(t, claim, complete)
		})
	}
}

// An outage is told to all that wait for the same answer at once, not to one after the other.
func TestOutageIsShared(t *testing.T) {
	eachGuard(t, func(t *testing.T, guard build) {
		atGates(t, 1, func(t *testing.T, stores []*spy) {
			patient, impatient := guard(t, stores[0], dedupe.WithWait(time.Minute)), guard(t, stores[0])
			let := stores[0].holding(claim, errors.Join(dedupe.ErrStoreUnavailable, errDown))
			results := []<-chan error{ask("7").start(impatient)}
			synctest.Wait()
			for i := range 6 {
				results = append(results, ask("7").start([]*dedupe.Guard{patient, impatient}[i%2]))
			}
			undecided(t, results...)
			let()
			for _, result := range results {
				err := <-result
				refused(t, err, dedupe.StoreUnavailable)
				mustMatch(t, err, errDown)
			}
			if n := len(stores[0].seen(claim)); n != 1 {
				t.Errorf("the store saw %d claims", n)
			}
		})
	})
}
