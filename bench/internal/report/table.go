package report

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/bench/internal/bench"
)

// Markdown returns all of the report as text.
func Markdown(r *bench.Report) string {
	var b strings.Builder
	b.WriteString("# Measurements\n\n" + Conditions(r) + "\n")
	if problems := r.Problems(); len(problems) > 0 {
		b.WriteString("## Problems\n\nThese rows did not measure what they claim:\n\n")
		for _, problem := range problems {
			fmt.Fprintf(&b, "- %s\n", problem)
		}
		b.WriteString("\n")
	}
	if len(r.Figures) > 0 {
		b.WriteString("## Figures\n\n" + Figures(r) + "\n")
	}
	for _, s := range r.Scenarios {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n%s\n", s.Title, s.About, Table(r, s))
		for _, c := range charts() {
			if cases, _, _ := c.values(r); c.scenario == s.Name && len(cases) > 0 {
				fmt.Fprintf(&b, "![%s](%s.svg)\n\n", c.title, c.file)
			}
		}
	}
	b.WriteString("## Configuration\n\n")
	for _, c := range r.Contenders {
		fmt.Fprintf(&b, "- **%s** %s: %s.\n", c.Name, c.Version, c.Configuration)
	}
	return b.String()
}

// Conditions says where and how the report came about.
func Conditions(r *bench.Report) string {
	text := fmt.Sprintf("`%s` on %s: %d processors (%s), %s, %s on loopback (round trip %.0f µs), go-redis %s. Medians; every row was checked.\n",
		r.Command, r.Date, r.Processors, r.Machine, r.Go, r.Redis, r.RoundTrip, r.GoRedis)
	if r.Short {
		text += "\n**Short mode**: a few operations for each row show that everything works; the numbers say nothing.\n"
	}
	return text
}

// Figures returns the claims and their targets.
func Figures(r *bench.Report) string {
	rows := [][]string{{"figure", "measured", "target", ""}}
	for _, f := range r.Figures {
		verdict := "missed"
		if f.Met {
			verdict = "met"
		}
		rows = append(rows, []string{f.Name, fmt.Sprintf("%.3g", f.Value), f.Target, verdict})
	}
	return grid(rows, 1)
}

// Table returns the rows of a scenario.
func Table(r *bench.Report, s bench.Scenario) string {
	var columns []bench.Column
	for _, name := range s.Columns {
		for _, c := range bench.Columns() {
			if c.Name == name {
				columns = append(columns, c)
			}
		}
	}
	rows := [][]string{{"case", "contender"}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.Title)
	}
	previous := ""
	for _, row := range r.Rows {
		if row.Scenario != s.Name {
			continue
		}
		cells := []string{row.Case, row.Contender}
		if row.Case == previous {
			cells[0] = ""
		}
		previous = row.Case
		for _, c := range columns {
			cell := ""
			if v, ok := row.Values[c.Name]; ok {
				cell = fmt.Sprintf(c.Format, v)
			}
			cells = append(cells, cell)
		}
		if len(row.Problems) > 0 {
			cells[1] += " **(invalid)**"
		}
		rows = append(rows, cells)
	}
	return grid(rows, 2)
}

// grid renders rows, of which the first is the head, with the columns after the first so many
// aligned to the right.
func grid(rows [][]string, left int) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i > 0 {
			continue
		}
		for column := range row {
			if column < left {
				b.WriteString("|---")
			} else {
				b.WriteString("|---:")
			}
		}
		b.WriteString("|\n")
	}
	return b.String()
}
