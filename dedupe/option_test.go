package dedupe_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

const day = 24 * time.Hour

func TestOptionBounds(t *testing.T) {
	for _, test := range []struct {
		name      string
		option    func(time.Duration) dedupe.Option
		low, high time.Duration
		text      string
	}{
		{"WithLease", dedupe.WithLease, 50 * time.Millisecond, time.Hour, "must be from 50ms to 1h0m0s; the default is 30s"},
		{"WithMaxHold", dedupe.WithMaxHold, 30 * time.Second, day, "must be from 30s to 24h0m0s; the default is 15m0s"},
		{"WithWait", dedupe.WithWait, 0, 10 * time.Minute, "must be from 0s to 10m0s; the default is 0s"},
		{"WithRetention", dedupe.WithRetention, time.Second, 90 * day, "must be from 1s to 2160h0m0s; the default is 24h0m0s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, good := range []time.Duration{test.low, test.high} {
				once(t, memstore.New(), test.option(good))
			}
			for _, bad := range []time.Duration{test.low - 1, test.high + 1} {
				guard, err := dedupe.Once(memstore.New(), anyCaller, nil, test.option(bad))
				checkProblems(t, guard, err, fmt.Sprintf("dedupe.Once: %s(%v) %s", test.name, bad, test.text))
			}
		})
	}
}

func TestWithMaxWaitersBounds(t *testing.T) {
	for _, good := range []int{1, 100_000} {
		serialize(t, memstore.New(), dedupe.WithMaxWaiters(good))
	}
	for _, bad := range []int{-1, 0, 100_001} {
		guard, err := dedupe.Serialize(memstore.New(), "account", nil, dedupe.WithMaxWaiters(bad))
		checkProblems(t, guard, err,
			fmt.Sprintf("dedupe.Serialize: WithMaxWaiters(%d) must be from 1 to 100000; the default is 256", bad))
	}
}

func TestWithCrashPolicyBounds(t *testing.T) {
	guard, err := dedupe.Once(memstore.New(), anyCaller, nil, dedupe.WithCrashPolicy(3))
	checkProblems(t, guard, err, "WithCrashPolicy(3) must be CrashTakeOver, CrashHold or CrashReport")
}

func TestMaxHoldIsNotShorterThanTheLease(t *testing.T) {
	guard, err := dedupe.Serialize(memstore.New(), "account", nil,
		dedupe.WithLease(time.Minute), dedupe.WithMaxHold(time.Minute-1))
	checkProblems(t, guard, err, "WithMaxHold(59.999999999s) must be from 1m0s to 24h0m0s")
}

// Who asks for a long lease alone does not have to know of the maximum hold.
func TestMaxHoldFollowsALongLease(t *testing.T) {
	serialize(t, memstore.New(), dedupe.WithLease(time.Hour))
}

func TestMisplacedOptions(t *testing.T) {
	store := memstore.New()
	guard, err := dedupe.Serialize(store, "account", nil,
		dedupe.WithRetention(time.Hour), dedupe.WithFingerprint(func(dedupe.Request) ([]byte, error) { return nil, nil }),
		dedupe.WithCrashPolicy(dedupe.CrashHold), dedupe.WithOperation("charge"))
	checkProblems(t, guard, err,
		"WithRetention is an option of Once", "WithFingerprint is an option of Once",
		"WithCrashPolicy is an option of Once", "WithOperation is an option of Once")

	guard, err = dedupe.Once(store, anyCaller, nil, dedupe.WithAlso(param("also")))
	checkProblems(t, guard, err, "dedupe.Once: WithAlso is an option of Serialize")
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	guard, err := dedupe.Serialize(nil, "", nil, nil,
		dedupe.WithWait(-time.Second), dedupe.WithMaxWaiters(0), dedupe.WithMaxHold(0),
		dedupe.WithAlso(param("from"), nil, param("to")), dedupe.WithOperation("charge"))
	checkProblems(t, guard, err,
		"the store is nil", `the name is ""`, "an option is nil",
		"WithWait(-1s) must be from 0s", "WithMaxWaiters(0) must be from 1",
		"WithMaxHold(0s) must be from 30s", "WithAlso: key function 2 is nil",
		"WithOperation is an option of Once")
}

// Of an option given twice the last counts, and WithAlso adds up.
func TestOptionsGivenTwice(t *testing.T) {
	spy := newSpy()
	guard := serialize(t, spy,
		dedupe.WithLease(time.Hour), dedupe.WithLease(time.Second),
		dedupe.WithAlso(param("also")), dedupe.WithAlso(param("caller")))
	r := ask("1", "2")
	r.proceeded(t, r.through(guard))
	claims := spy.seen(claim)
	if len(claims) != 3 {
		t.Errorf("%d keys were claimed, want the three of the guard and both WithAlso", len(claims))
	}
	if got := claims[0].lasts; got != time.Second {
		t.Errorf("the lease is %v, want the last one given, 1s", got)
	}
}

func TestNilFunctionsInOptions(t *testing.T) {
	guard, err := dedupe.Once(memstore.New(), anyCaller, nil,
		dedupe.WithSkip(nil), dedupe.WithObserver(nil), dedupe.WithFingerprint(nil))
	checkProblems(t, guard, err, "WithSkip: the function is nil", "WithObserver: the function is nil", "WithFingerprint: the function is nil")
}
