package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/fleet"
	"github.com/interlock-go/interlock/bench/internal/statistics"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

// outcome is one measurement.
type outcome struct {
	jobs          []worker.Job
	start         int64
	results       []worker.Result
	before, after info
	roundTrip     time.Duration
}

// run carries jobs out on s. The board's first slot is new to them.
func (b *Bench) run(ctx context.Context, s *service, jobs []worker.Job, during func(start int64) error) (o outcome, err error) {
	b.board.Slot(0).Reset()
	for i := range jobs { // what has no sign of a stall to go by is given up after a time
		switch job := &jobs[i]; {
		case job.Grace != 0:
		case job.Duration > 0:
			job.Grace = 20 * time.Second
		default:
			job.Grace = time.Minute
		}
	}
	o.jobs = jobs
	o.start, o.results, err = fleet.Run(ctx, jobs, fleet.Hooks{
		Before: func() (err error) {
			if o.roundTrip, err = s.roundTrip(ctx, pauseOf(jobs[0])); err != nil {
				return err
			}
			o.before, err = s.info(ctx)
			return err
		},
		During: during,
		After: func() (err error) {
			o.after, err = s.info(ctx)
			return err
		},
	})
	return o, err
}

// pauseOf is how long a processor has nothing to do between two round trips: not for minutes.
func pauseOf(job worker.Job) time.Duration {
	if job.Lock == nil {
		return 0
	}
	return min(job.Lock.Hold, 5*time.Millisecond)
}

// turns returns how many operations were carried out.
func (o outcome) turns() (n int) {
	for _, r := range o.results {
		n += len(r.Turns)
	}
	return n
}

// total adds up something over all workers.
func (o outcome) total(of func(worker.Result) float64) (sum float64) {
	for _, r := range o.results {
		sum += of(r)
	}
	return sum
}

// values describes an outcome in the columns that every row has. took says how long an operation
// took: until it held the lock, or as a whole.
func (o outcome) values(took func(worker.Turn) int64) Values {
	var times, shares []float64
	rate, stall := 0.0, int64(0)
	for i, r := range o.results {
		stall = max(stall, r.Stall)
		begin, end := o.window(i)
		inside := 0
		share := make([]float64, o.jobs[i].Goroutines)
		for _, t := range r.Turns {
			times = append(times, float64(took(t)))
			if t.Done <= end {
				inside++
				share[t.Goroutine]++
			}
		}
		rate += float64(inside) / time.Duration(end-begin).Seconds()
		shares = append(shares, share...)
	}
	count := max(1, float64(len(times)))
	summary := statistics.Summarize(times)
	return Values{
		opsPerSecond:   rate,
		operations:     float64(len(times)),
		p50:            microseconds(summary.P50),
		p99:            microseconds(summary.P99),
		longest:        microseconds(max(summary.Longest, time.Duration(stall))),
		commands:       rounded(o.total(func(r worker.Result) float64 { return float64(r.Commands) }) / count),
		serverCommands: rounded(float64(o.after.commands-o.before.commands) / count),
		clientCPU:      rounded(o.total(func(r worker.Result) float64 { return microseconds(r.CPU) }) / count),
		serverCPU:      rounded(microseconds(o.after.cpu-o.before.cpu) / count),
		allocations:    rounded(o.total(func(r worker.Result) float64 { return float64(r.Allocation) }) / count),
		jain:           rounded(statistics.Jain(shares)),
		roundTrip:      microseconds(o.roundTrip),
		stalled:        o.total(func(r worker.Result) float64 { return float64(r.Stalled) }),
	}
}

// window returns the stretch over which a process's operations per second are counted: its duration,
// or all of the measurement where jobs end by themselves.
func (o outcome) window(process int) (begin, end int64) {
	if d := o.jobs[process].Duration; d > 0 {
		begin = o.results[process].Began
		return begin, begin + int64(d)
	}
	end = o.start + 1
	for _, r := range o.results {
		for _, t := range r.Turns {
			end = max(end, t.Done)
		}
	}
	return o.start, end
}

func whole(t worker.Turn) int64     { return t.Done - t.Arrived }
func untilHeld(t worker.Turn) int64 { return t.Entered - t.Arrived }

// failures says which operations failed, or that there were none at all. That operations of a peer
// stalled is a result; that they did of Interlock is a failure.
func (o outcome) failures() (problems []string) {
	if o.turns() == 0 {
		problems = append(problems, "no operation was carried out")
	}
	for i, r := range o.results {
		if r.Failed > 0 {
			problems = append(problems, fmt.Sprintf("%d operations of process %d failed: %q", r.Failed, i, r.Errors))
		}
		if lock := o.jobs[i].Lock; r.Stalled > 0 && (lock == nil || !slices.Contains(contender.Peers(), lock.Contender)) {
			problems = append(problems, fmt.Sprintf("%d operations of process %d stalled", r.Stalled, i))
		}
		if want := o.jobs[i].Goroutines * o.jobs[i].Operations; o.jobs[i].Duration == 0 && len(r.Turns)+r.Stalled != want {
			problems = append(problems, fmt.Sprintf("process %d carried out %d operations, not %d", i, len(r.Turns)+r.Stalled, want))
		}
	}
	return problems
}

// repeatedKeys says whether operations had the same key that should each have had their own.
func (o outcome) repeatedKeys() (problems []string) {
	seen := make(map[uint64]struct{}, o.turns())
	for _, r := range o.results {
		for _, t := range r.Turns {
			seen[t.Key] = struct{}{}
		}
	}
	if len(seen) != o.turns() {
		problems = append(problems, fmt.Sprintf("%d operations had %d keys", o.turns(), len(seen)))
	}
	return problems
}

// holds returns when the one key was held, for each process and together.
func (o outcome) holds() (each [][]statistics.Hold, all []statistics.Hold) {
	for _, r := range o.results {
		var own []statistics.Hold
		for _, t := range r.Turns {
			own = append(own, statistics.Hold{Arrived: t.Arrived, Entered: t.Entered, Left: t.Left})
		}
		each, all = append(each, own), append(all, own...)
	}
	return each, all
}

// margin is how much later somebody must have arrived to have overtaken: a goroutine can lose its
// processor between noting its arrival and being in line.
const margin = time.Millisecond

// exclusion adds what is to be known about one key that all operations held, and says whether it was
// theirs alone.
func (b *Bench) exclusion(o outcome, v Values) (problems []string) {
	each, all := o.holds()
	overtaken := 0
	for _, own := range each {
		overtaken += statistics.Overtaken(own, margin)
	}
	gaps, overlaps := statistics.Idle(all)
	sum := 0.0
	for _, h := range all {
		sum += float64(h.Left - h.Entered)
	}
	count := max(1, float64(len(all)))
	slot := b.board.Slot(0)
	v[violations] = float64(slot.Violations())
	v[inversions] = rounded(float64(overtaken) / count)
	v[idle] = microseconds(statistics.Summarize(gaps).P50)
	v[held] = microseconds(time.Duration(sum / count))
	if slot.Violations() != 0 || slot.Lost() != 0 || overlaps != 0 {
		problems = append(problems, fmt.Sprintf("exclusion was violated: %d entered while another was inside, %d updates were lost, %d of %d holds overlap",
			slot.Violations(), slot.Lost(), overlaps, len(all)))
	}
	if failed := o.total(func(r worker.Result) float64 { return float64(r.Failed + r.Stalled) }); failed == 0 && slot.Entries() != int64(len(all)) {
		problems = append(problems, fmt.Sprintf("%d entered, and %d operations were carried out", slot.Entries(), len(all)))
	}
	return problems
}

// lineWait is the longest wait in units of a whole line of holds.
func (o outcome) lineWait(v Values) float64 {
	line := 0
	for _, job := range o.jobs {
		line += job.Goroutines
	}
	return v[longest] / (float64(line) * max(1, v[held]))
}
