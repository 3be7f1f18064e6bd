package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/bench/internal/bench"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

func TestMain(m *testing.M) {
	if os.Getenv(worker.Variable) == "1" {
		os.Exit(worker.Main())
	}
	os.Exit(m.Run())
}

// rows is what the short mode measures: the cases of each scenario, and who takes part.
func rows() (all []string) {
	add := func(scenario string, cases, contenders []string) {
		for _, c := range cases {
			for _, who := range contenders {
				all = append(all, scenario+"|"+c+"|"+who)
			}
		}
	}
	libraries := []string{"floor", "redislock", "redsync", "rueidislock", "interlock"}
	own := []string{"interlock"}
	add("cold", []string{"goroutines: 1", "goroutines: 64"}, append([]string{"interlock+autopipeline"}, libraries...))
	add("hot", []string{"1 × 16, hold 0s", "4 × 4, hold 1ms", "4 × 1, hold 5ms"}, libraries)
	add("burst", []string{"24 at once", "24, 2 ms apart in each process"}, libraries)
	add("partition", []string{"lease 1.5s"}, libraries)
	add("middleware", []string{"net/http, goroutines: 8", "Echo, goroutines: 8", "gRPC, goroutines: 8"},
		[]string{"bare", "floor", "Serialize", "Once fresh", "Once replayed"})
	add("memory", []string{"held by Serialize", "answered, small body", "answered, body of 1 KiB", "answered, body of 16 KiB"}, own)
	for _, n := range []string{"256", "1024"} {
		add("keys", []string{"to " + n + ": Once fresh", "at " + n + ": Serialize", "at " + n + ": Once replayed"}, own)
	}
	add("waiters", []string{"1 local", "16 local", "1 remote", "16 remote"}, own)
	add("processes", []string{"1, own keys", "1, one key", "4, own keys", "4, one key"}, own)
	for _, where := range []string{"one Redis: ", "cluster of three: "} {
		add("capacity", []string{where + "Serialize", where + "Once fresh", where + "Once replayed"}, []string{"interlock", "interlock+autopipeline"})
	}
	return all
}

func TestShortModeHasEveryRow(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("redis-server not found: apt-get install redis-server")
	}
	t.Setenv("GORACE", "atexit_sleep_ms=0") // each worker would wait a second
	folder := t.TempDir()
	page := filepath.Join(folder, "page.md")
	if err := os.WriteFile(page, []byte("before <!-- bench:supported -->old<!-- /bench --> after"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), []string{"-short", "-o", folder, "-update", page}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d\n%s", status, &stderr)
	}
	t.Log(stderr.String())

	encoded, err := os.ReadFile(filepath.Join(folder, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report bench.Report
	if err := json.Unmarshal(encoded, &report); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]*bench.Row)
	for _, row := range report.Rows {
		got[row.Scenario+"|"+row.Case+"|"+row.Contender] = row
	}
	for _, want := range rows() {
		row := got[want]
		switch {
		case row == nil:
			t.Errorf("there is no row %s", want)
		case len(row.Values) == 0 || len(row.Repeats) != 1:
			t.Errorf("%s has %d values and %d repeats", want, len(row.Values), len(row.Repeats))
		case !strings.Contains(stdout.String(), "| "+row.Contender+" |"):
			t.Errorf("the table has no row of %s", row.Contender)
		}
		delete(got, want)
	}
	for name := range got {
		t.Errorf("there is a row %s, which this test does not know", name)
	}
	for _, plot := range []string{"cold", "hot", "hot-held", "hot-longest", "burst", "partition", "middleware-http", "middleware-echo", "middleware-grpc", "keys", "waiters", "processes", "processes-hot"} {
		if drawn, err := os.ReadFile(filepath.Join(folder, plot+".svg")); err != nil || !bytes.Contains(drawn, []byte("</svg>")) {
			t.Errorf("plot %s: %v", plot, err)
		}
	}
	updated, err := os.ReadFile(page)
	if text := string(updated); err != nil || strings.Contains(text, "old") || !strings.Contains(text, "one Redis: Once replayed") || !strings.HasSuffix(text, " after") {
		t.Errorf("the page was not updated: %v %s", err, updated)
	}
}

func TestMistakesInFlags(t *testing.T) {
	for _, args := range [][]string{{"-unknown"}, {"argument"}, {"-repeats", "x"}} {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), args, &stdout, &stderr); status != 2 || stderr.Len() == 0 {
			t.Errorf("%q: status %d, %q", args, status, &stderr)
		}
	}
	for _, args := range [][]string{{"-only", "nothing"}, {"-contenders", "nobody"}, {"-repeats", "-1"}} {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), args, &stdout, &stderr); status != 1 || stderr.Len() == 0 {
			t.Errorf("%q: status %d, %q", args, status, &stderr)
		}
	}
}

func TestHelpNamesEverything(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), []string{"-h"}, &stdout, &stderr); status != 0 {
		t.Errorf("status %d", status)
	}
	for _, name := range append(scenarios(), contenders()...) {
		if !strings.Contains(stderr.String(), name) {
			t.Errorf("the help does not name %s", name)
		}
	}
}
