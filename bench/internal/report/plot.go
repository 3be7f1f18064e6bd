package report

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/interlock-go/interlock/bench/internal/bench"
)

const (
	plotWidth  = 20 * vg.Centimeter
	plotHeight = 11 * vg.Centimeter
)

// chart is a plot of one column of one scenario.
type chart struct {
	file, title, column, unit string
	scenario                  string
	filter                    func(caseName string) bool
	lines                     bool // over the number in the case's name, instead of bars
}

func starts(prefix string) func(string) bool {
	return func(name string) bool { return strings.HasPrefix(name, prefix) }
}

func ends(suffix string) func(string) bool {
	return func(name string) bool { return strings.HasSuffix(name, suffix) }
}

func charts() []chart {
	return []chart{
		{file: "cold", scenario: "cold", title: "Cold: every operation its own key", column: "ops_per_second", unit: "operations per second", lines: true},
		{file: "hot", scenario: "hot", filter: ends("hold 0s"), title: "Hot: one key, not held (processes × goroutines)", column: "ops_per_second", unit: "operations per second"},
		{file: "hot-held", scenario: "hot", filter: ends("ms"), title: "Hot: one key, held (processes × goroutines)", column: "ops_per_second", unit: "operations per second"},
		{file: "hot-longest", scenario: "hot", title: "Hot: longest wait", column: "longest_us", unit: "µs"},
		{file: "burst", scenario: "burst", title: "Burst: drained after", column: "drained_ms", unit: "ms"},
		{file: "partition", scenario: "partition", title: "Partition: two believe that they hold the key", column: "overlap_ms", unit: "ms"},
		{file: "middleware-http", scenario: "middleware", filter: starts("net/http"), title: "net/http", column: "ops_per_second", unit: "requests per second"},
		{file: "middleware-echo", scenario: "middleware", filter: starts("Echo"), title: "Echo", column: "ops_per_second", unit: "requests per second"},
		{file: "middleware-grpc", scenario: "middleware", filter: starts("gRPC"), title: "gRPC", column: "ops_per_second", unit: "requests per second"},
		{file: "keys", scenario: "keys", title: "Latency at so many keys (p99)", column: "p99_us", unit: "µs", filter: starts("at ")},
		{file: "waiters", scenario: "waiters", title: "Waiters for one key: drained after", column: "drained_ms", unit: "ms"},
		{file: "processes", scenario: "processes", filter: ends("own keys"), title: "64 goroutines over so many processes", column: "ops_per_second", unit: "operations per second"},
		{file: "processes-hot", scenario: "processes", filter: ends("one key"), title: "64 goroutines over so many processes, one key for 1 ms", column: "ops_per_second", unit: "operations per second"},
	}
}

// plots draws the charts whose scenarios were measured.
func plots(r *bench.Report, folder string) (err error) {
	for _, c := range charts() {
		if drawn := c.draw(r, filepath.Join(folder, c.file+".svg")); drawn != nil {
			err = errors.Join(err, fmt.Errorf("plot %s: %w", c.file, drawn))
		}
	}
	return err
}

func (c chart) draw(r *bench.Report, path string) error {
	cases, contenders, value := c.values(r)
	if len(cases) == 0 {
		return nil
	}
	p := plot.New()
	p.Title.Text = c.title
	p.Y.Label.Text = c.unit
	p.Y.Min = 0
	p.Legend.Top = true
	add := c.bars
	if c.lines {
		add = c.curves
	}
	if err := add(p, cases, contenders, value); err != nil {
		return err
	}
	return p.Save(plotWidth, plotHeight, path)
}

// values returns the cases and contenders in the order of the rows, and a look-up.
func (c chart) values(r *bench.Report) (cases, contenders []string, value func(name, contender string) float64) {
	values := make(map[[2]string]float64)
	for _, row := range r.Rows {
		if row.Scenario != c.scenario || (c.filter != nil && !c.filter(row.Case)) {
			continue
		}
		if !slices.Contains(cases, row.Case) {
			cases = append(cases, row.Case)
		}
		if !slices.Contains(contenders, row.Contender) {
			contenders = append(contenders, row.Contender)
		}
		values[[2]string{row.Case, row.Contender}] = row.Values[c.column]
	}
	return cases, contenders, func(name, contender string) float64 { return values[[2]string{name, contender}] }
}

func (c chart) bars(p *plot.Plot, cases, contenders []string, value func(name, contender string) float64) error {
	width := plotWidth * 0.75 / vg.Length(max(1, len(cases)*(len(contenders)+1)))
	for i, who := range contenders {
		heights := make(plotter.Values, len(cases))
		for j, name := range cases {
			heights[j] = value(name, who)
		}
		bars, err := plotter.NewBarChart(heights, width)
		if err != nil {
			return err
		}
		bars.Color = plotutil.Color(i)
		bars.LineStyle.Width = 0
		bars.Offset = width * (vg.Length(i) - vg.Length(len(contenders)-1)/2)
		p.Add(bars)
		p.Legend.Add(who, bars)
	}
	p.NominalX(cases...)
	p.X.Min, p.X.Max = -0.5, float64(len(cases))-0.5
	p.X.Tick.Label.Font.Size = vg.Points(7)
	p.Y.Max *= 1.25 // room for the legend
	return nil
}

func (c chart) curves(p *plot.Plot, cases, contenders []string, value func(name, contender string) float64) error {
	var arguments []any
	for _, who := range contenders {
		var points plotter.XYs
		for _, name := range cases {
			points = append(points, plotter.XY{X: number(name), Y: value(name, who)})
		}
		slices.SortFunc(points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
		arguments = append(arguments, who, points)
	}
	p.X.Scale = plot.LogScale{}
	var ticks []plot.Tick
	for _, name := range cases {
		ticks = append(ticks, plot.Tick{Value: number(name), Label: strconv.FormatFloat(number(name), 'f', -1, 64)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	p.X.Label.Text = strings.TrimRight(cases[0], ": 0123456789")
	p.Legend.Left = true
	return plotutil.AddLinePoints(p, arguments...)
}

// number returns the number at the end of a case's name, at least 1.
func number(name string) float64 {
	digits := name[strings.LastIndexByte(name, ' ')+1:]
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 1
	}
	return max(1, n)
}
