package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

var processes = Scenario{
	Name:    "processes",
	Title:   "Number of processes",
	About:   "64 goroutines over so many processes: each operation its own key (times are of take and release), and all the same key held for 1 ms (times are until held).",
	Growth:  true,
	Columns: []string{opsPerSecond, p50, p99, longest, commands, clientCPU, serverCPU, jain, inversions, idle, violations},
	measure: (*Bench).measureProcesses,
}

func (b *Bench) measureProcesses(ctx context.Context, _ int) error {
	total := pick(b, 64, 16)
	for _, count := range pick(b, []int{1, 2, 4, 8, 16}, []int{1, 4}) {
		if err := b.service.flush(ctx); err != nil {
			return err
		}
		jobs := make([]worker.Job, count)
		for i := range jobs {
			jobs[i] = worker.Job{
				Servers: b.service.addresses, Process: i, Goroutines: total / count,
				Duration: pick(b, time.Second, 50*time.Millisecond),
				Lock:     &worker.Lock{Contender: contender.Interlock},
			}
		}
		o, err := b.run(ctx, b.service, jobs, nil)
		if err != nil {
			return err
		}
		values := o.values(whole)
		b.record(fmt.Sprintf("%d, own keys", count), contender.Interlock, values, o.coldProblems(values)...)

		if err := b.service.flush(ctx); err != nil {
			return err
		}
		c := crowd{processes: count, goroutines: total / count, hold: time.Millisecond, duration: pick(b, 1500*time.Millisecond, 100*time.Millisecond)}
		if o, err = b.run(ctx, b.service, b.crowdJobs(c, contender.Interlock), nil); err != nil {
			return err
		}
		values = o.values(untilHeld)
		b.record(fmt.Sprintf("%d, one key", count), contender.Interlock, values, append(o.failures(), b.exclusion(o, values)...)...)
	}
	return nil
}
