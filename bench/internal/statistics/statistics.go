// Package statistics describes what was measured.
package statistics

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Summary describes durations.
type Summary struct{ P50, P99, Longest time.Duration }

// Summarize describes durations, which it sorts. Of none it is zero.
func Summarize(durations []float64) Summary {
	if len(durations) == 0 {
		return Summary{}
	}
	slices.Sort(durations)
	quantile := func(p float64) time.Duration {
		return time.Duration(stat.Quantile(p, stat.Empirical, durations, nil))
	}
	return Summary{quantile(0.5), quantile(0.99), quantile(1)}
}

// Median returns the median of values, which it does not change; NaN of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Jain returns Jain's index of fairness: 1 when all have the same share, 1/n when one of n has
// everything. Where nobody has anything it is 1.
func Jain(shares []float64) float64 {
	sum, squares := floats.Sum(shares), floats.Dot(shares, shares)
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// Hold is one hold of a key, in times of one clock.
type Hold struct{ Arrived, Entered, Left int64 }

// Overtaken returns how many of the holds somebody entered before who had arrived later by more than
// margin. The holds are those of one process and one key; margin covers the time from noting an
// arrival to being in line.
func Overtaken(holds []Hold, margin time.Duration) (count int) {
	sorted := byEntry(holds)
	latest := int64(math.MinInt64)
	for _, h := range sorted {
		if latest > h.Arrived+int64(margin) {
			count++
		}
		latest = max(latest, h.Arrived)
	}
	return count
}

// Idle returns, for each hold but the first, how long nobody had held the key; and how many began
// before the one before had ended. The holds are all those of one key.
func Idle(holds []Hold) (idle []float64, overlaps int) {
	sorted := byEntry(holds)
	for i := 1; i < len(sorted); i++ {
		gap := sorted[i].Entered - sorted[i-1].Left
		if gap < 0 {
			overlaps++
		}
		idle = append(idle, float64(max(0, gap)))
	}
	return idle, overlaps
}

func byEntry(holds []Hold) []Hold {
	sorted := slices.Clone(holds)
	slices.SortFunc(sorted, func(a, b Hold) int { return int(a.Entered - b.Entered) })
	return sorted
}
