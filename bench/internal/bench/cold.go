package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/bench/internal/worker"
)

var cold = Scenario{
	Name:  "cold",
	Title: "Cold: every operation its own key",
	About: "One process. Each operation takes and releases a lock that nobody else wants; times are of both together.",
	Columns: []string{
		opsPerSecond, p50, p99, longest, commands, serverCommands, clientCPU, serverCPU, allocations, jain, stalled, violations,
	},
	measure: (*Bench).measureCold,
}

func coldCase(goroutines int) string { return fmt.Sprintf("goroutines: %d", goroutines) }

// asked are the levels that figures are taken from, which are repeated.
var asked = map[int]bool{1: true, 64: true, 1024: true}

func (b *Bench) measureCold(ctx context.Context, repeat int) error {
	for _, goroutines := range pick(b, []int{1, 8, 64, 512, 1024}, []int{1, 64}) {
		if repeat > 0 && !asked[goroutines] {
			continue
		}
		for _, c := range b.contenders(repeat) {
			if err := b.service.flush(ctx); err != nil {
				return err
			}
			o, err := b.run(ctx, b.service, []worker.Job{{
				Servers:    b.service.addresses,
				Goroutines: goroutines,
				Duration:   pick(b, 400*time.Millisecond, 50*time.Millisecond),
				Grace:      pick(b, 5*time.Second, 2*time.Second),
				Lock:       &worker.Lock{Contender: c.Name},
			}}, nil)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			values := o.values(whole)
			b.record(coldCase(goroutines), c.Name, values, o.coldProblems(values)...)
		}
	}
	return nil
}

// coldProblems says whether keys were shared or locks were free of charge. Where no two operations
// have a key in common there is nothing to exclude, which counts as no violation.
func (o outcome) coldProblems(v Values) []string {
	problems := append(o.failures(), o.repeatedKeys()...)
	if len(problems) == 0 {
		v[violations] = 0
	}
	if v[commands] < 2 {
		problems = append(problems, fmt.Sprintf("%.3f commands for each operation: nobody takes and releases a key with less than two", v[commands]))
	}
	return problems
}
