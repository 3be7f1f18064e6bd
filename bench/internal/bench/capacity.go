package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"

	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

var capacity = Scenario{
	Name:  "capacity",
	Title: "What one Redis and a cluster of three carry",
	About: "Two processes of 64 goroutines each call net/http handlers, over a plain client and over an AutoPipeline. Clients and servers share this machine's processors, so " +
		"operations per second say what the machine carries; what a Redis carries follows from its processor time: *supported* is 70 % of one core over the time for each operation.",
	Growth:  true,
	Columns: []string{opsPerSecond, p50, p99, commands, clientCPU, serverCPU, supported},
	measure: (*Bench).measureCapacity,
}

// busy is how much of a core Redis may be busy for latency to stay what it is.
const busy = 0.7

func (b *Bench) measureCapacity(ctx context.Context, _ int) error {
	if err := b.measureCapacityOf(ctx, b.service, "one Redis", 1); err != nil {
		return err
	}
	const masters = 3
	var addresses []string
	if err := b.host.attempt(func() { addresses = redistest.StartCluster(b.host, masters).Addrs() }); err != nil {
		return fmt.Errorf("start a cluster: %w", err)
	}
	cluster := newService(addresses)
	defer func() { _ = cluster.close() }()
	return b.measureCapacityOf(ctx, cluster, "cluster of three", masters)
}

func (b *Bench) measureCapacityOf(ctx context.Context, s *service, name string, masters int) error {
	const workers = 2
	for _, piped := range []bool{false, true} {
		for _, variant := range []string{worker.Serialize, worker.OnceFresh, worker.OnceReplayed} {
			if err := s.flush(ctx); err != nil {
				return err
			}
			jobs := make([]worker.Job, workers)
			for i := range jobs {
				jobs[i] = worker.Job{
					Servers: s.addresses, Process: i,
					Goroutines: pick(b, 64, 8),
					Duration:   pick(b, time.Second, 50*time.Millisecond),
					Handler: &worker.Handler{
						Framework: worker.NetHTTP, Variant: variant, Keys: "capacity",
						First: i << 32, Population: answered, AutoPipeline: piped,
					},
				}
			}
			o, err := b.run(ctx, s, jobs, nil)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", name, variant, err)
			}
			values := o.values(whole)
			values[supported] = busy * float64(masters) * float64(time.Second/time.Microsecond) / max(values[serverCPU], 0.01)
			row := fmt.Sprintf("%s: %s", name, variant)
			who := contender.Interlock
			if piped {
				who = contender.AutoPipelined
			}
			b.record(row, who, values, o.handlerProblems(variant, values)...)
		}
	}
	return nil
}
