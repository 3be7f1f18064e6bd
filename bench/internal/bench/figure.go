package bench

import (
	"fmt"

	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/statistics"
)

// Figure is one claim: a median of ratios, each of two values from the same repeat.
type Figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Target string  `json:"target"` // what it is meant to be: "≥ 1.3"
	Met    bool    `json:"met"`
}

// bound is a target.
type bound struct {
	least bool
	value float64
}

func atLeast(value float64) bound { return bound{true, value} }
func atMost(value float64) bound  { return bound{false, value} }

func (b bound) String() string {
	if b.least {
		return fmt.Sprintf("≥ %v", b.value)
	}
	return fmt.Sprintf("≤ %v", b.value)
}

func (b bound) met(value float64) bool {
	if b.least {
		return value >= b.value
	}
	return value <= b.value
}

// figures takes the figures whose rows are there.
func figures(r *Report) (all []Figure) {
	peers := contender.Peers()
	add := func(name string, target bound, ratios []float64) {
		if len(ratios) > 0 {
			value := statistics.Median(ratios)
			all = append(all, Figure{name, rounded(value), target.String(), target.met(value)})
		}
	}
	for _, own := range []string{contender.Interlock, contender.AutoPipelined} {
		add("cold, 1 goroutine: "+own+" over the floor", atLeast(0.95), r.over(cold.Name, coldCase(1), own, contender.FloorName))
		add("cold, 64 goroutines: "+own+" over the best peer", atLeast(1.3), r.over(cold.Name, coldCase(64), own, peers...))
		add("cold, 1024 goroutines: "+own+" over the best peer", atLeast(3), r.over(cold.Name, coldCase(1024), own, peers...))
	}
	const own = contender.Interlock
	alone, crowded, single := "1 × 64, hold 0s", "4 × 16, hold 1ms", "4 × 1, hold 5ms"
	add("hot, "+alone+": over the best peer", atLeast(10), r.over(hot.Name, alone, own, peers...))
	add("hot, "+crowded+": over the best peer", atLeast(1.2), r.over(hot.Name, crowded, own, peers...))
	add("hot, "+crowded+": longest wait in turns of everybody", atMost(1.3), r.each(hot.Name, crowded, own, waitRatio))
	add("hot, "+crowded+": Jain's index", atLeast(0.99), r.each(hot.Name, crowded, own, jain))
	add("hot, "+crowded+": client commands for each operation", atMost(1), r.each(hot.Name, crowded, own, commands))
	add("hot, "+single+": idle between holders, in plain round trips after a pause as long as a hold", atMost(1.5), r.ratio(hot.Name, single, own, idle, roundTrip))
	add("hot, "+single+": client commands for each operation", atMost(3), r.each(hot.Name, single, own, commands))
	add("burst of 200: drained, in holds", atMost(1.15), r.each(burst.Name, "200 at once", own, drainRatio))
	add("burst of 200: order inversions", atMost(0), r.each(burst.Name, "200, 2 ms apart in each process", own, inversions))
	for _, row := range r.Rows {
		if row.Scenario == partition.Name && row.Contender == own {
			add("partition: ms for which two believe it, the longest", atMost(0), []float64{row.Values[longest] / 1000})
		}
	}
	return all
}

// each returns a column of a row, repeat by repeat.
func (r *Report) each(scenario, name, contender, column string) (values []float64) {
	row := r.Row(scenario, name, contender)
	if row == nil {
		return nil
	}
	for _, repeat := range row.Repeats {
		if v, ok := repeat[column]; ok {
			values = append(values, v)
		}
	}
	return values
}

// ratio returns one column over another of the same row.
func (r *Report) ratio(scenario, name, contender, column, unit string) (values []float64) {
	units := r.each(scenario, name, contender, unit)
	for i, v := range r.each(scenario, name, contender, column) {
		values = append(values, v/units[i])
	}
	return values
}

// over returns the operations per second over those of the best of others, repeat by repeat.
func (r *Report) over(scenario, name, own string, others ...string) (values []float64) {
	for i, v := range r.each(scenario, name, own, opsPerSecond) {
		best := 0.0
		for _, other := range others {
			if all := r.each(scenario, name, other, opsPerSecond); i < len(all) {
				best = max(best, all[i])
			}
		}
		if best > 0 {
			values = append(values, v/best)
		}
	}
	return values
}
