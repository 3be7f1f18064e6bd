package report

import (
	"fmt"

	"github.com/interlock-go/interlock/bench/internal/bench"
)

// Supported returns how many requests a second one core of Redis supports, for each kind of request:
// the table that the page about capacity derives its numbers from. "" when it was not measured.
func Supported(r *bench.Report) string {
	rows := [][]string{{"request", "client", "commands", "Redis CPU µs", "requests/s for one core at 70 %", "measured here, ops/s"}}
	for _, row := range r.Rows {
		if row.Scenario != "capacity" {
			continue
		}
		rows = append(rows, []string{
			row.Case, row.Contender,
			fmt.Sprintf("%.2f", row.Values["commands_per_op"]),
			fmt.Sprintf("%.1f", row.Values["server_cpu_us_per_op"]),
			fmt.Sprintf("%.0f", row.Values["supported_per_second"]),
			fmt.Sprintf("%.0f", row.Values["ops_per_second"]),
		})
	}
	if len(rows) == 1 {
		return ""
	}
	return grid(rows, 2)
}
