package dedupe_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

type rate struct {
	Currency string
	Cents    int
}

// computing returns a computation that counts its runs and takes d.
func computing[T any](runs *int, d time.Duration, value T, err error) func(context.Context) (T, error) {
	return func(context.Context) (T, error) {
		*runs++
		time.Sleep(d)
		return value, err
	}
}

func TestFetchKeepsTheValue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		guard := jobs(t, memstore.New(), dedupe.WithRetention(time.Minute))
		runs := 0
		fetch := func(value rate) (rate, error) {
			return dedupe.Fetch(t.Context(), guard, "EUR", computing(&runs, 0, value, nil))
		}
		first, later := rate{"EUR", 108}, rate{"EUR", 109}
		for range 3 {
			if got, err := fetch(first); err != nil || got != first {
				t.Errorf("got %v and the error %v, want %v", got, err, first)
			}
		}
		if runs != 1 {
			t.Errorf("the value was computed %d times within the retention", runs)
		}
		time.Sleep(time.Minute)
		if got, err := fetch(later); err != nil || got != later || runs != 2 {
			t.Errorf("after the retention it was computed %d times; got %v and the error %v", runs, got, err)
		}
	})
}

func TestFetchKeepsZeroValues(t *testing.T) {
	guard := jobs(t, memstore.New())
	runs := 0
	for range 2 {
		got, err := dedupe.Fetch(t.Context(), guard, "none", computing[*rate](&runs, 0, nil, nil))
		if err != nil || got != nil {
			t.Errorf("got %v and the error %v", got, err)
		}
	}
	if runs != 1 {
		t.Errorf("that there is no value was found out %d times", runs)
	}
}

func TestFetchDogPile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memstore.New()
		runs := 0
		values := make(chan string, 50)
		for range 50 { // processes
			guard := jobs(t, store, dedupe.WithWait(time.Minute))
			go func() {
				value, err := dedupe.Fetch(t.Context(), guard, "page", computing(&runs, 10*time.Second, "expensive", nil))
				if err != nil {
					t.Error(err)
				}
				values <- value
			}()
		}
		began := time.Now()
		for range 50 {
			if value := <-values; value != "expensive" {
				t.Errorf("a process got %q", value)
			}
		}
		if runs != 1 {
			t.Errorf("the value was computed %d times", runs)
		}
		if took := time.Since(began); took > 10*time.Second+soon {
			t.Errorf("it took %v, want soon after 10s", took)
		}
	})
}

// Whoever computes in vain is told; of those that wait one computes, and the others get its value.
func TestFetchErrorIsNotShared(t *testing.T) {
	bubble(t, func(t *testing.T) {
		guard := jobs(t, memstore.New(), dedupe.WithWait(time.Minute))
		runs := 0
		compute := func(context.Context) (int, error) {
			runs++
			time.Sleep(time.Second)
			if runs == 1 {
				return 0, errJob
			}
			return runs, nil
		}
		type result struct {
			value int
			err   error
		}
		results := make(chan result)
		for range 5 {
			go func() {
				value, err := dedupe.Fetch(t.Context(), guard, "7", compute)
				results <- result{value, err}
			}()
		}
		failed := 0
		for range 5 {
			switch r := <-results; {
			case r.err == errJob:
				failed++
			case r.err != nil || r.value != 2:
				t.Errorf("got %v and the error %v, want the second run's", r.value, r.err)
			}
		}
		if failed != 1 || runs != 2 {
			t.Errorf("%d were told of the error, and there were %d runs", failed, runs)
		}
	})
}

func TestFetchWaitsInVain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		guard := jobs(t, memstore.New(), dedupe.WithWait(time.Second))
		first, second := 0, 0
		done := make(chan error)
		go func() {
			_, err := dedupe.Fetch(t.Context(), guard, "7", computing(&first, time.Minute, 1, nil))
			done <- err
		}()
		synctest.Wait()
		value, err := dedupe.Fetch(t.Context(), guard, "7", computing(&second, 0, 2, nil))
		mustMatch(t, err, dedupe.ErrInFlight)
		if value != 0 || second != 0 {
			t.Errorf("got %d with the error, having computed %d times", value, second)
		}
		if err := <-done; err != nil || first != 1 {
			t.Errorf("the first one computed %d times, with the error %v", first, err)
		}
	})
}

func TestFetchNeedsAOnce(t *testing.T) {
	runs := 0
	_, err := dedupe.Fetch(t.Context(), serialize(t, memstore.New()), "7", computing(&runs, 0, 1, nil))
	if err == nil || !strings.Contains(err.Error(), "give a Once") || runs != 0 {
		t.Errorf("it was computed %d times, with the error %v", runs, err)
	}
}

func TestFetchOfWhatIsNoJSON(t *testing.T) {
	guard := jobs(t, memstore.New())
	runs := 0
	for range 2 {
		_, err := dedupe.Fetch(t.Context(), guard, "7", computing(&runs, 0, make(chan int), nil))
		if err == nil || !strings.Contains(err.Error(), "json: unsupported type") {
			t.Errorf("got %v", err)
		}
	}
	if runs != 2 {
		t.Errorf("what cannot be kept was computed %d times, want each time", runs)
	}
}

// A newer version of the program reads what an older one kept.
func TestFetchOfAnotherTypeThanWasKept(t *testing.T) {
	guard := jobs(t, memstore.New())
	runs := 0
	if _, err := dedupe.Fetch(t.Context(), guard, "7", computing(&runs, 0, "text", nil)); err != nil {
		t.Fatal(err)
	}
	_, err := dedupe.Fetch(t.Context(), guard, "7", computing(&runs, 0, rate{}, nil))
	refused(t, err, dedupe.AnswerUnavailable)
	mustMatch(t, err, dedupe.ErrRecordUnreadable)
}

func TestFetchWhenTheStoreIsDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		spy.down()
		runs := 0
		_, err := dedupe.Fetch(t.Context(), jobs(t, spy), "7", computing(&runs, 0, 1, nil))
		refused(t, err, dedupe.StoreUnavailable)
		for range 2 {
			value, err := dedupe.Fetch(t.Context(), jobs(t, spy, dedupe.WithFailOpen()), "7", computing(&runs, 0, 1, nil))
			if err != nil || value != 1 {
				t.Errorf("got %d and the error %v", value, err)
			}
		}
		if runs != 2 {
			t.Errorf("it was computed %d times, want each time that the guard was open", runs)
		}
	})
}

func TestFetchWithoutKey(t *testing.T) {
	runs := 0
	_, err := dedupe.Fetch(t.Context(), jobs(t, memstore.New()), "", computing(&runs, 0, 1, nil))
	refused(t, err, dedupe.KeyMissing)
	if runs != 0 {
		t.Errorf("it was computed %d times", runs)
	}
}

// A computation that loses its lease has its context cancelled like any other handler.
func TestFetchCarriesTheLease(t *testing.T) {
	guard := jobs(t, memstore.New())
	_, err := dedupe.Fetch(t.Context(), guard, "7", func(ctx context.Context) (uint64, error) {
		lease, ok := guard.Lease(ctx)
		if !ok {
			t.Fatal("there is no lease")
		}
		return lease.Fence(), lease.Check(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}
