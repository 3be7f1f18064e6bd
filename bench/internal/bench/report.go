package bench

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"

	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/statistics"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

// Values are the columns of one row, by the names that are among [Columns].
type Values map[string]float64

// Row is one contender in one case of one scenario.
type Row struct {
	Scenario  string   `json:"scenario"`
	Case      string   `json:"case"`
	Contender string   `json:"contender"`
	Values    Values   `json:"values"`             // medians of the repeats
	Repeats   []Values `json:"repeats"`            // in their order
	Problems  []string `json:"problems,omitempty"` // why the row does not say what it claims
}

// Contestant tells which library took part, in which version and how configured.
type Contestant struct {
	Name          string `json:"name"`
	Version       string `json:"version"`
	Configuration string `json:"configuration"`
}

// Report is everything that was measured.
type Report struct {
	Date       string       `json:"date"`
	Command    string       `json:"command"`
	Machine    string       `json:"machine"`
	Processors int          `json:"processors"`
	Go         string       `json:"go"`
	Redis      string       `json:"redis"`
	GoRedis    string       `json:"go_redis"`
	RoundTrip  float64      `json:"round_trip_us"` // of a PING on the idle machine
	Short      bool         `json:"short"`
	Contenders []Contestant `json:"contenders"`
	Figures    []Figure     `json:"figures"`
	Rows       []*Row       `json:"rows"`
	Scenarios  []Scenario   `json:"-"`
}

func newReport(options Options, server *redistest.Server, roundTrip time.Duration) *Report {
	name, version := server.Version()
	r := &Report{
		Date:       time.Now().UTC().Format(time.RFC3339),
		Command:    strings.Join(append([]string{"go run ."}, os.Args[1:]...), " "),
		Machine:    machine(),
		Processors: runtime.NumCPU(),
		Go:         runtime.Version(),
		Redis:      name + " " + version,
		GoRedis:    contender.ModuleVersion("github.com/redis/go-redis/v9"),
		RoundTrip:  microseconds(roundTrip),
		Short:      options.Short,
	}
	for _, c := range contender.All() {
		if len(options.Contenders) == 0 || slices.Contains(options.Contenders, c.Name) {
			r.Contenders = append(r.Contenders, Contestant{c.Name, c.Version(), c.Configuration})
		}
	}
	return r
}

// machine names the processor, where the system tells.
func machine() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOOS + "/" + runtime.GOARCH
}

// record adds one repeat to a row.
func (b *Bench) record(name, contender string, values Values, problems ...string) {
	row := b.report.Row(b.current.Name, name, contender)
	if row == nil {
		row = &Row{Scenario: b.current.Name, Case: name, Contender: contender}
		b.report.Rows = append(b.report.Rows, row)
	}
	row.Repeats = append(row.Repeats, values)
	row.Problems = append(row.Problems, problems...)
	for _, problem := range problems {
		b.progress("PROBLEM: %s, %s, %s: %s", b.current.Name, name, contender, problem)
	}
}

// Row returns a row, or nil.
func (r *Report) Row(scenario, name, contender string) *Row {
	i := slices.IndexFunc(r.Rows, func(row *Row) bool {
		return row.Scenario == scenario && row.Case == name && row.Contender == contender
	})
	if i < 0 {
		return nil
	}
	return r.Rows[i]
}

// finish takes the medians and the figures, and puts the rows in order.
func (r *Report) finish(scenarios []Scenario) {
	r.Scenarios = scenarios
	for _, row := range r.Rows {
		row.Values = make(Values)
		for column := range row.Repeats[0] {
			var all []float64
			for _, repeat := range row.Repeats {
				all = append(all, repeat[column])
			}
			row.Values[column] = statistics.Median(all)
		}
	}
	names := worker.Variants()
	for _, c := range contender.All() {
		names = append(names, c.Name)
	}
	order := func(name string) int { return slices.Index(names, name) }
	// Cases stay in the order of their first repeat; the contenders took turns at being the first.
	rank := make(map[string]int)
	for _, row := range r.Rows {
		if _, ok := rank[row.Scenario+row.Case]; !ok {
			rank[row.Scenario+row.Case] = len(rank)
		}
	}
	slices.SortStableFunc(r.Rows, func(a, b *Row) int {
		if c := rank[a.Scenario+a.Case] - rank[b.Scenario+b.Case]; c != 0 {
			return c
		}
		return order(a.Contender) - order(b.Contender)
	})
	r.Figures = figures(r)
}

// Problems lists all problems, each with its row.
func (r *Report) Problems() (problems []string) {
	for _, row := range r.Rows {
		for _, problem := range row.Problems {
			problems = append(problems, fmt.Sprintf("%s, %s, %s: %s", row.Scenario, row.Case, row.Contender, problem))
		}
	}
	return problems
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// rounded keeps a share readable in JSON.
func rounded(x float64) float64 { return math.Round(x*1e6) / 1e6 }
