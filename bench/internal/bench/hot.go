package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

var hot = Scenario{
	Name:  "hot",
	Title: "Hot: one key, everybody comes back at once",
	About: "Times are from asking until holding the lock. An operation that has begun is finished after the end of the measurement, and its time counts; " +
		"operations per second are those that ended before. *longest / line* is the longest wait in units of one turn of everybody. " +
		"*Stalled* are those that were given up after the end: nobody had held the key for two seconds, and they were not told. " +
		"*Inversions* are operations before which somebody entered who had arrived more than a millisecond later in the same process.",
	Columns: []string{
		opsPerSecond, p50, p99, longest, waitRatio, commands, serverCommands, clientCPU, serverCPU, allocations,
		jain, inversions, idle, roundTrip, held, stalled, violations,
	},
	measure: (*Bench).measureHot,
}

// crowd is who wants the one key.
type crowd struct {
	processes, goroutines int // goroutines of each process
	hold                  time.Duration
	duration              time.Duration
	asked                 bool // a figure is taken from it, so it is repeated
}

func (c crowd) String() string {
	return fmt.Sprintf("%d × %d, hold %v", c.processes, c.goroutines, c.hold)
}

func (b *Bench) crowds() []crowd {
	if b.options.Short {
		const d = 150 * time.Millisecond
		return []crowd{
			{1, 16, 0, d, true},
			{4, 4, time.Millisecond, d, true},
			{4, 1, 5 * time.Millisecond, d, true},
		}
	}
	return []crowd{
		{1, 64, 0, 1500 * time.Millisecond, true},
		{1, 64, time.Millisecond, time.Second, false},
		{1, 64, 5 * time.Millisecond, 1500 * time.Millisecond, false},
		{4, 16, 0, time.Second, false},
		{4, 16, time.Millisecond, 2500 * time.Millisecond, true},
		{4, 16, 5 * time.Millisecond, 1500 * time.Millisecond, false},
		{4, 1, 5 * time.Millisecond, time.Second, true},
	}
}

func (b *Bench) measureHot(ctx context.Context, repeat int) error {
	for _, crowd := range b.crowds() {
		if repeat > 0 && !crowd.asked {
			continue
		}
		for _, c := range b.contenders(repeat, contender.AutoPipelined) {
			if err := b.measureCrowd(ctx, crowd, c.Name); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
		}
	}
	return nil
}

func (b *Bench) measureCrowd(ctx context.Context, c crowd, name string) error {
	if err := b.service.flush(ctx); err != nil {
		return err
	}
	o, err := b.run(ctx, b.service, b.crowdJobs(c, name), nil)
	if err != nil {
		return err
	}
	values := o.values(untilHeld)
	problems := append(o.failures(), b.exclusion(o, values)...)
	if c.hold > 0 {
		values[waitRatio] = rounded(o.lineWait(values))
	}
	b.record(c.String(), name, values, problems...)
	return nil
}

func (b *Bench) crowdJobs(c crowd, name string) []worker.Job {
	jobs := make([]worker.Job, c.processes)
	for i := range jobs {
		jobs[i] = worker.Job{
			Servers:    b.service.addresses,
			Process:    i,
			Goroutines: c.goroutines,
			Duration:   c.duration,
			Lock:       &worker.Lock{Contender: name, Key: "hot", Hold: c.hold, Board: b.path},
		}
	}
	return jobs
}
