package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

var keys = Scenario{
	Name:  "keys",
	Title: "Number of keys",
	About: "Answered requests are added by 256 goroutines over an AutoPipeline; then 8 goroutines take and release keys of their own, and have answers " +
		"among all of them replayed, over a plain client.",
	Growth:  true,
	Columns: []string{opsPerSecond, p50, p99, longest, commands, serverCPU, usedMemory, bytesPerKey},
	measure: (*Bench).measureKeys,
}

func (b *Bench) measureKeys(ctx context.Context, _ int) error {
	if err := b.service.flush(ctx); err != nil {
		return err
	}
	empty, err := b.service.info(ctx)
	if err != nil {
		return err
	}
	const goroutines = 256
	have := 0
	for _, want := range pick(b, []int{1 << 10, 10 << 10, 100 << 10, 1000 << 10}, []int{256, 1024}) {
		fill, err := b.serve(ctx, worker.Job{
			Goroutines: goroutines,
			Operations: (want - have) / goroutines,
			Handler:    &worker.Handler{Variant: worker.OnceFresh, First: have, AutoPipeline: true},
		})
		if err != nil {
			return err
		}
		values := fill.values(whole)
		values[usedMemory] = float64(fill.after.memory) / (1 << 20)
		values[bytesPerKey] = float64(fill.after.memory-empty.memory) / float64(fill.after.keys)
		problems := fill.handlerProblems(worker.OnceFresh, values)
		if fill.after.keys < int64(want) {
			problems = append(problems, fmt.Sprintf("Redis has %d keys, not %d", fill.after.keys, want))
		}
		b.record(fmt.Sprintf("to %d: Once fresh", want), contender.Interlock, values, problems...)
		have = want

		for _, variant := range []string{worker.Serialize, worker.OnceReplayed} {
			o, err := b.serve(ctx, worker.Job{
				Goroutines: 8,
				Duration:   pick(b, 500*time.Millisecond, 50*time.Millisecond),
				Handler:    &worker.Handler{Variant: variant, Population: have, Answered: true},
			})
			if err != nil {
				return err
			}
			values := o.values(whole)
			values[usedMemory] = float64(o.after.memory) / (1 << 20)
			b.record(fmt.Sprintf("at %d: %s", want, variant), contender.Interlock, values, o.handlerProblems(variant, values)...)
		}
	}
	return nil
}

// serve carries out a job on net/http.
func (b *Bench) serve(ctx context.Context, job worker.Job) (outcome, error) {
	job.Servers = b.service.addresses
	job.Handler.Framework, job.Handler.Keys = worker.NetHTTP, "keys"
	return b.run(ctx, b.service, []worker.Job{job}, nil)
}
