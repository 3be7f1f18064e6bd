package dedupe_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

var errJob = errors.New("the job failed")

// counting returns a job that counts its runs and returns err.
func counting(runs *int, err error) func(context.Context) error {
	return func(context.Context) error { *runs++; return err }
}

func TestRunUnderSerialize(t *testing.T) {
	guard := serialize(t, memstore.New())
	runs := 0
	for range 2 {
		err := guard.Run(t.Context(), "7", func(ctx context.Context) error {
			if lease, ok := guard.Lease(ctx); !ok || lease.Fence() == 0 {
				t.Error("the job has no lease")
			}
			elsewhere := guard.Run(t.Context(), "7", counting(&runs, nil))
			refused(t, elsewhere, dedupe.Locked)
			mustMatch(t, elsewhere, dedupe.ErrLocked)
			runs++
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if runs != 2 {
		t.Errorf("the job ran %d times, want each time that the key was free", runs)
	}
}

func TestRunReturnsTheJobsErrorAsItIs(t *testing.T) {
	for _, guard := range []*dedupe.Guard{serialize(t, memstore.New()), jobs(t, memstore.New())} {
		runs := 0
		for range 2 {
			if err := guard.Run(t.Context(), "7", counting(&runs, errJob)); err != errJob {
				t.Errorf("%s: got %v", guard.Name(), err)
			}
		}
		if runs != 2 {
			t.Errorf("%s: a job that fails ran %d times, want each time", guard.Name(), runs)
		}
	}
}

func TestRunUnderOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		guard := jobs(t, memstore.New(), dedupe.WithRetention(time.Hour))
		runs := 0
		for range 3 {
			if err := guard.Run(t.Context(), "2026-01-31", counting(&runs, nil)); err != nil {
				t.Error(err)
			}
		}
		if runs != 1 {
			t.Errorf("the job ran %d times within the retention", runs)
		}
		time.Sleep(time.Hour)
		if err := guard.Run(t.Context(), "2026-01-31", counting(&runs, nil)); err != nil || runs != 2 {
			t.Errorf("after the retention it ran %d times, with the error %v", runs, err)
		}
	})
}

func TestRunUnderOnceWhileTheFirstRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memstore.New()
		guard, patient := jobs(t, store), jobs(t, store, dedupe.WithWait(time.Minute))
		runs := 0
		err := guard.Run(t.Context(), "7", func(context.Context) error {
			refused(t, guard.Run(t.Context(), "7", counting(&runs, nil)), dedupe.InFlight)
			go func() {
				if err := patient.Run(t.Context(), "7", counting(&runs, nil)); err != nil || runs != 0 {
					t.Errorf("the one that waited ran %d times, with the error %v", runs, err)
				}
			}()
			time.Sleep(time.Second)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
	})
}

func TestRunReleasesOnPanicAndGoexit(t *testing.T) {
	for _, guard := range []*dedupe.Guard{serialize(t, memstore.New()), jobs(t, memstore.New())} {
		for _, end := range []func(){func() { panic(errJob) }, runtime.Goexit} {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { _ = recover() }()
				_ = guard.Run(t.Context(), "7", func(context.Context) error { end(); return nil })
			}()
			<-ended
		}
		runs := 0
		if err := guard.Run(t.Context(), "7", counting(&runs, nil)); err != nil || runs != 1 {
			t.Errorf("%s: the next one ran %d times, with the error %v", guard.Name(), runs, err)
		}
	}
}

func TestRunWithoutKey(t *testing.T) {
	store := memstore.New()
	for _, guard := range []*dedupe.Guard{serialize(t, store), jobs(t, store), jobs(t, store, dedupe.WithOptionalKey())} {
		runs := 0
		refused(t, guard.Run(t.Context(), "", counting(&runs, nil)), dedupe.KeyMissing)
		if runs != 0 {
			t.Errorf("%s: the job ran", guard.Name())
		}
	}
}

// What a guard does with requests has no bearing on jobs.
func TestRunAsksOnlyTheCaller(t *testing.T) {
	unasked := func(dedupe.Request) (string, error) { t.Error("a key function was asked"); return "", nil }
	skip := dedupe.WithSkip(func(dedupe.Request) bool { t.Error("WithSkip was asked"); return true })
	account, err := dedupe.Serialize(memstore.New(), "account", unasked, dedupe.WithAlso(unasked), skip)
	if err != nil {
		t.Fatal(err)
	}
	type user struct{}
	byUser := func(r dedupe.Request) (string, error) {
		name, _ := r.Value(user{}).(string)
		if fromContext := r.Context().Value(user{}); name == "" || fromContext != name {
			return "", errDown
		}
		return name, nil
	}
	perUser, err := dedupe.Once(memstore.New(), byUser, unasked, skip)
	if err != nil {
		t.Fatal(err)
	}

	runs := 0
	if err := account.Run(t.Context(), "7", counting(&runs, nil)); err != nil || runs != 1 {
		t.Errorf("the job ran %d times, with the error %v", runs, err)
	}
	for _, name := range []string{"alice", "bob", "alice"} {
		ctx := context.WithValue(t.Context(), user{}, name)
		if err := perUser.Run(ctx, "7", counting(&runs, nil)); err != nil {
			t.Error(err)
		}
	}
	if runs != 3 {
		t.Errorf("the jobs ran %d times, want once more for each user", runs)
	}
	refused(t, perUser.Run(t.Context(), "7", counting(&runs, nil)), dedupe.KeyInvalid)
}

// Jobs are not requests and share one operation, unless they are given names.
func TestJobsAreKeptApartByOperation(t *testing.T) {
	store := memstore.New()
	runs := 0
	for _, guard := range []*dedupe.Guard{
		jobs(t, store), jobs(t, store), // the second is the same job
		jobs(t, store, dedupe.WithOperation("invoices")), jobs(t, store, dedupe.WithOperation("reports")),
	} {
		if err := guard.Run(t.Context(), "2026-01", counting(&runs, nil)); err != nil {
			t.Error(err)
		}
	}
	if runs != 3 {
		t.Errorf("the jobs ran %d times, want 3", runs)
	}
}

func TestRunWhenTheStoreIsDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		spy.down()
		runs := 0
		refused(t, serialize(t, spy).Run(t.Context(), "7", counting(&runs, nil)), dedupe.StoreUnavailable)
		if err := serialize(t, spy, dedupe.WithFailOpen()).Run(t.Context(), "7", counting(&runs, errJob)); err != errJob {
			t.Errorf("the job that runs unguarded returned %v", err)
		}
		if runs != 1 {
			t.Errorf("the job ran %d times", runs)
		}
	})
}

func TestJobIsToldWhenItsLeaseIsLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spy := newSpy()
		err := serialize(t, spy).Run(t.Context(), "7", func(ctx context.Context) error {
			spy.failing(extend)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		mustMatch(t, err, dedupe.ErrLeaseLost)
	})
}

// A host that dies in the middle of a job frees it with the end of its lease.
func TestCrashFreesTheJob(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, dying := memstore.New(), newSpy()
		dying.behind = store
		dying.failing(extend, complete, release)
		go func() { _ = serialize(t, dying).Run(t.Context(), "7", func(context.Context) error { return nil }) }()
		synctest.Wait()

		runs := 0
		guard := serialize(t, store)
		refused(t, guard.Run(t.Context(), "7", counting(&runs, nil)), dedupe.Locked)
		time.Sleep(30 * time.Second)
		if err := guard.Run(t.Context(), "7", counting(&runs, nil)); err != nil || runs != 1 {
			t.Errorf("the job ran %d times, with the error %v", runs, err)
		}
	})
}
