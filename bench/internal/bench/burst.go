package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

var burst = Scenario{
	Name:  "burst",
	Title: "Burst: a crowd arrives and wants one key once",
	About: "Four processes, 1 ms each. *drained* is from the start until the last one is through; next to it in units of the holds as they really lasted. " +
		"At once, nobody knows who came first; where they come 2 ms apart in each process, *inversions* tells whether they were served in that order.",
	Columns: []string{
		drained, drainRatio, p50, p99, longest, commands, serverCommands, clientCPU, serverCPU, inversions, held, stalled, violations,
	},
	measure: (*Bench).measureBurst,
}

// arrival is a way to arrive.
type arrival struct {
	name string
	pace time.Duration
}

const burstProcesses = 4

func (b *Bench) arrivals() (crowd int, arrivals []arrival) {
	crowd = pick(b, 200, 24)
	return crowd, []arrival{
		{fmt.Sprintf("%d at once", crowd), 0},
		{fmt.Sprintf("%d, 2 ms apart in each process", crowd), 2 * time.Millisecond},
	}
}

func (b *Bench) measureBurst(ctx context.Context, repeat int) error {
	crowd, arrivals := b.arrivals()
	for _, a := range arrivals {
		if repeat > 0 && a.pace > 0 {
			continue
		}
		for _, c := range b.contenders(repeat, contender.AutoPipelined) {
			if err := b.service.flush(ctx); err != nil {
				return err
			}
			jobs := make([]worker.Job, burstProcesses)
			for i := range jobs {
				jobs[i] = worker.Job{
					Servers:    b.service.addresses,
					Process:    i,
					Goroutines: crowd / burstProcesses,
					Operations: 1,
					Pace:       a.pace,
					Lock:       &worker.Lock{Contender: c.Name, Key: "burst", Hold: time.Millisecond, Board: b.path},
				}
			}
			o, err := b.run(ctx, b.service, jobs, nil)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			values := o.values(untilHeld)
			problems := append(o.failures(), b.exclusion(o, values)...)
			o.drain(values)
			b.record(a.name, c.Name, values, problems...)
		}
	}
	return nil
}

// drain adds how long it took from the start until the last one had left.
func (o outcome) drain(v Values) {
	_, all := o.holds()
	last, sum := o.start, int64(0)
	for _, h := range all {
		last = max(last, h.Left)
		sum += h.Left - h.Entered
	}
	v[drained] = microseconds(time.Duration(last-o.start)) / 1000
	v[drainRatio] = rounded(float64(last-o.start) / float64(max(1, sum)))
}
