package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

var memory = Scenario{
	Name:    "memory",
	Title:   "Memory in Redis for each key",
	About:   "What used_memory grows by, for each key: Redis's own table included, connections not.",
	Growth:  true,
	Columns: []string{operations, bytesPerKey},
	measure: (*Bench).measureMemory,
}

// answerSizes are the bodies of answers that are kept.
var answerSizes = []int{0, 1 << 10, 16 << 10}

func (b *Bench) measureMemory(ctx context.Context, _ int) error {
	if err := b.measureHeld(ctx); err != nil {
		return err
	}
	count := pick(b, 4096, 512)
	for _, size := range answerSizes {
		if err := b.service.flush(ctx); err != nil {
			return err
		}
		o, err := b.run(ctx, b.service, []worker.Job{{
			Servers:    b.service.addresses,
			Goroutines: 64,
			Operations: count / 64,
			Handler:    &worker.Handler{Framework: worker.NetHTTP, Variant: worker.OnceFresh, Keys: "size", Answer: size},
		}}, nil)
		if err != nil {
			return err
		}
		values := Values{operations: float64(o.turns())}
		problems := append(o.handlerProblems(worker.OnceFresh, o.values(whole)), o.perKey(values, o.after, count)...)
		name := "answered, small body"
		if size > 0 {
			name = fmt.Sprintf("answered, body of %d KiB", size>>10)
		}
		b.record(name, contender.Interlock, values, problems...)
	}
	return nil
}

// measureHeld measures keys that are held, which are there only while they are.
func (b *Bench) measureHeld(ctx context.Context) error {
	if err := b.service.flush(ctx); err != nil {
		return err
	}
	count := pick(b, 4096, 512)
	var most info
	o, err := b.run(ctx, b.service, []worker.Job{{
		Servers:    b.service.addresses,
		Goroutines: count,
		Operations: 1,
		Lock:       &worker.Lock{Contender: contender.Interlock, Hold: pick(b, 3*time.Second, time.Second)},
	}}, func(int64) error {
		return b.until(ctx, func() bool {
			now, err := b.service.info(ctx)
			if err == nil && now.keys > most.keys {
				most = now
			}
			return err != nil || now.keys >= int64(count)
		})
	})
	if err != nil {
		return err
	}
	values := Values{operations: float64(o.turns())}
	b.record("held by Serialize", contender.Interlock, values, append(o.failures(), o.perKey(values, most, count)...)...)
	return nil
}

// perKey adds the memory of each of the keys that came into being since the outcome's beginning.
func (o outcome) perKey(v Values, now info, want int) (problems []string) {
	added := now.keys - o.before.keys
	v[bytesPerKey] = float64(now.memory-o.before.memory) / float64(max(1, added))
	if added < int64(want) {
		problems = append(problems, fmt.Sprintf("%d keys came into being, not %d", added, want))
	}
	return problems
}
