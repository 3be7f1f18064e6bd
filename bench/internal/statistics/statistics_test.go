package statistics_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/internal/statistics"
)

func TestSummarize(t *testing.T) {
	var durations []float64
	for i := range 1000 {
		durations = append(durations, float64(1000-i))
	}
	got := statistics.Summarize(durations)
	if want := (statistics.Summary{P50: 500, P99: 990, Longest: 1000}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := statistics.Summarize(nil); got != (statistics.Summary{}) {
		t.Errorf("of nothing: %v", got)
	}
	if got := statistics.Summarize([]float64{7}); got != (statistics.Summary{P50: 7, P99: 7, Longest: 7}) {
		t.Errorf("of one: %v", got)
	}
}

func TestMedian(t *testing.T) {
	values := []float64{9, 1, 5}
	if got := statistics.Median(values); got != 5 {
		t.Errorf("median of three: %v", got)
	}
	if !slices.Equal(values, []float64{9, 1, 5}) {
		t.Errorf("the values were changed: %v", values)
	}
	if got := statistics.Median([]float64{4, 1, 2, 9}); got != 3 {
		t.Errorf("median of four: %v", got)
	}
	if got := statistics.Median(nil); !math.IsNaN(got) {
		t.Errorf("median of none: %v", got)
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   float64
	}{
		{[]float64{5, 5, 5, 5}, 1},
		{[]float64{20, 0, 0, 0}, 0.25},
		{[]float64{1, 3}, 0.8},
		{[]float64{0, 0}, 1},
	} {
		if got := statistics.Jain(c.shares); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Jain(%v) = %v, want %v", c.shares, got, c.want)
		}
	}
}

func TestOvertaken(t *testing.T) {
	holds := []statistics.Hold{
		{Arrived: 30, Entered: 100},
		{Arrived: 10, Entered: 200}, // overtaken by 20
		{Arrived: 25, Entered: 300}, // overtaken by 5
		{Arrived: 40, Entered: 400},
	}
	for margin, want := range map[time.Duration]int{0: 2, 5: 1, 19: 1, 20: 0} {
		if got := statistics.Overtaken(holds, margin); got != want {
			t.Errorf("with a margin of %d: %d, want %d", margin, got, want)
		}
	}
}

func TestIdle(t *testing.T) {
	idle, overlaps := statistics.Idle([]statistics.Hold{
		{Entered: 50, Left: 60},
		{Entered: 10, Left: 20},
		{Entered: 25, Left: 30},
		{Entered: 59, Left: 70},
	})
	if want := []float64{5, 20, 0}; !slices.Equal(idle, want) || overlaps != 1 {
		t.Errorf("idle %v with %d overlaps, want %v with 1", idle, overlaps, want)
	}
}
