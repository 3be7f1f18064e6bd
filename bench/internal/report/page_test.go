package report

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/bench/internal/bench"
)

// measured is a report with one row of the scenario "cold".
func measured() *bench.Report {
	var scenarios []bench.Scenario
	for _, s := range bench.Scenarios() {
		if s.Name == "cold" {
			scenarios = append(scenarios, s)
		}
	}
	return &bench.Report{
		Scenarios: scenarios,
		Rows: []*bench.Row{{
			Scenario: "cold", Case: "goroutines: 1", Contender: "floor",
			Values:   bench.Values{"ops_per_second": 12345.6, "p50_us": 78},
			Problems: []string{"it was tired"},
		}},
	}
}

func TestFillRewritesWhatWasMeasured(t *testing.T) {
	got, err := fill(measured(), "a <!-- bench:cold -->x<!-- /bench --> b <!-- bench:hot -->kept<!-- /bench --> c")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a <!-- bench:cold -->\n| case |", "| goroutines: 1 | floor **(invalid)** | 12346 | 78 |", "b <!-- bench:hot -->kept<!-- /bench --> c"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
	again, err := fill(measured(), got)
	if err != nil || again != got {
		t.Errorf("filled twice it is another: %v\n%s", err, again)
	}
}

func TestFillRefusesMistakes(t *testing.T) {
	for _, page := range []string{"<!-- bench:cold", "<!-- bench:cold -->", "<!-- bench:lukewarm --><!-- /bench -->"} {
		if got, err := fill(measured(), page); err == nil {
			t.Errorf("%q became %q", page, got)
		}
	}
}

func TestMarkdownShowsProblems(t *testing.T) {
	if text := Markdown(measured()); !strings.Contains(text, "cold, goroutines: 1, floor: it was tired") {
		t.Error(text)
	}
}
