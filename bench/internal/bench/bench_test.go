package bench_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/bench/internal/bench"
	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

func TestMain(m *testing.M) {
	contender.Register(broken("broken", func(work func()) error {
		work()
		return nil
	}))
	contender.Register(broken("failing", func(func()) error { return errors.New("it does not lock") }))
	if os.Getenv(worker.Variable) == "1" {
		os.Exit(worker.Main())
	}
	os.Exit(m.Run())
}

// broken returns a contender that excludes nobody.
func broken(name string, run func(work func()) error) contender.Contender {
	return contender.Contender{Name: name, Open: func(contender.Setting) (contender.Lock, error) { return brokenLock(run), nil }}
}

type brokenLock func(work func()) error

func (l brokenLock) Run(ctx context.Context, key string, work func(context.Context)) error {
	if strings.HasPrefix(key, "warm-up") {
		return nil
	}
	return l(func() { work(ctx) })
}

func (brokenLock) Close() error { return nil }

func needRedis(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("redis-server not found: apt-get install redis-server")
		}
		t.Skip("redis-server not found: apt-get install redis-server")
	}
}

// measure runs one scenario in short mode, and returns the problems of its report.
func measure(t *testing.T, scenario, contender string) (*bench.Report, string) {
	t.Helper()
	needRedis(t)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // each worker would wait a second
	report, err := bench.Run(t.Context(), bench.Options{Short: true, Repeats: 1, Only: []string{scenario}, Contenders: []string{contender}})
	if err != nil && !errors.Is(err, bench.ErrRows) {
		t.Fatal(err)
	}
	problems := strings.Join(report.Problems(), "\n")
	if (err == nil) != (problems == "") {
		t.Errorf("the error is %v, the problems are %q", err, problems)
	}
	return report, problems
}

func TestBrokenLockViolatesExclusion(t *testing.T) {
	report, problems := measure(t, "hot", "broken")
	for _, crowd := range []string{"1 × 16, hold 0s", "4 × 4, hold 1ms", "4 × 1, hold 5ms"} {
		row := report.Row("hot", crowd, "broken")
		if row == nil {
			t.Fatalf("there is no row %q", crowd)
		}
		if strings.HasSuffix(crowd, "hold 0s") {
			continue // on few processors nobody need meet
		}
		if row.Values["violations"] == 0 || !strings.Contains(problems, crowd+", broken: exclusion was violated") {
			t.Errorf("%s: %v violations; problems: %s", crowd, row.Values["violations"], problems)
		}
	}
}

func TestLockForFreeIsNotCold(t *testing.T) {
	if _, problems := measure(t, "cold", "broken"); !strings.Contains(problems, "less than two") {
		t.Errorf("a lock without a command passed: %q", problems)
	}
}

func TestFailingLockFailsItsRow(t *testing.T) {
	if _, problems := measure(t, "burst", "failing"); !strings.Contains(problems, "it does not lock") {
		t.Errorf("a lock that fails passed: %q", problems)
	}
}

func TestGoodLockHasNoProblems(t *testing.T) {
	report, problems := measure(t, "hot", contender.Interlock)
	if problems != "" {
		t.Error(problems)
	}
	for _, row := range report.Rows {
		for _, column := range []string{"ops_per_second", "p50_us", "longest_us", "commands_per_op", "client_cpu_us_per_op", "allocations_per_op", "jain"} {
			if row.Values[column] <= 0 {
				t.Errorf("%s: %s is %v", row.Case, column, row.Values[column])
			}
		}
		if row.Values["jain"] > 1 || row.Values["p50_us"] > row.Values["longest_us"] {
			t.Errorf("%s: %v", row.Case, row.Values)
		}
	}
}

func TestUnknownNamesAreErrors(t *testing.T) {
	for name, options := range map[string]bench.Options{
		"scenario":  {Repeats: 1, Only: []string{"warm"}},
		"contender": {Repeats: 1, Contenders: []string{"etcd"}},
		"repeats":   {},
	} {
		if _, err := bench.Run(t.Context(), options); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
