package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/bench/internal/worker"
)

var middleware = Scenario{
	Name:  "middleware",
	Title: "Middleware: a POST with an idempotency key",
	About: "One process, a handler that answers at once. net/http and Echo are called by ServeHTTP without a network; gRPC has a client and a server over bufconn. " +
		"Once fresh and Serialize have a new key for each request; Once replayed picks among 1000 that were answered before.",
	Columns: []string{opsPerSecond, p50, p99, longest, commands, serverCommands, clientCPU, serverCPU, allocations, violations},
	measure: (*Bench).measureMiddleware,
}

const answered = 1000

func middlewareCase(framework string, goroutines int) string {
	return fmt.Sprintf("%s, goroutines: %d", framework, goroutines)
}

func (b *Bench) measureMiddleware(ctx context.Context, repeat int) error {
	if repeat > 0 {
		return nil
	}
	for _, framework := range worker.Frameworks() {
		for _, goroutines := range pick(b, []int{1, 64}, []int{8}) {
			for _, variant := range worker.Variants() {
				if err := b.service.flush(ctx); err != nil {
					return err
				}
				o, err := b.run(ctx, b.service, []worker.Job{{
					Servers:    b.service.addresses,
					Goroutines: goroutines,
					Duration:   pick(b, 500*time.Millisecond, 50*time.Millisecond),
					Handler:    &worker.Handler{Framework: framework, Variant: variant, Keys: "m", Population: answered},
				}}, nil)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", framework, variant, err)
				}
				values := o.values(whole)
				b.record(middlewareCase(framework, goroutines), variant, values, o.handlerProblems(variant, values)...)
			}
		}
	}
	return nil
}

// handlerProblems says whether handlers ran as often as they should, for as many commands as that
// takes.
func (o outcome) handlerProblems(variant string, v Values) []string {
	problems := o.failures()
	runs := int(o.total(func(r worker.Result) float64 { return float64(r.Runs) }))
	want, least := o.turns(), 2.0
	switch variant {
	case worker.Bare:
		least = 0
	case worker.OnceReplayed:
		// Repeats in one process at the same time may share a command; most are not at the same time.
		want, least = 0, 0.5
	}
	if variant != worker.OnceReplayed {
		problems = append(problems, o.repeatedKeys()...)
	}
	if v[violations] = float64(max(0, runs-want)); runs != want {
		problems = append(problems, fmt.Sprintf("the handler ran %d times for %d requests, not %d times", runs, o.turns(), want))
	}
	if v[commands] < least {
		problems = append(problems, fmt.Sprintf("%.3f commands for each request, which take at least %.1f", v[commands], least))
	}
	return problems
}
