package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"

	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

var partition = Scenario{
	Name:  "partition",
	Title: "Partition: the holder is cut off without a sign",
	About: "A holder reaches Redis through a proxy that from some moment on lets nothing pass and closes nothing. Another process waits for the same key on a good line. " +
		"The holder believes in its lock until its library says otherwise: its context is cancelled, an extension fails, or, where there is no renewal, its own TTL is over. " +
		"*Two believe it* is how long both do, by one clock; it is a median, the longest stands beside it.",
	Columns: []string{overlap, longest, takeover},
	measure: (*Bench).measurePartition,
}

// All contenders and all repeats are measured at the same time, each with a key of its own: nearly
// nothing happens, for long.
func (b *Bench) measurePartition(ctx context.Context, repeat int) error {
	if repeat > 0 {
		return nil
	}
	lease := pick(b, 5*time.Second, 1500*time.Millisecond)
	limit := pick(b, 30*time.Second, 6*time.Second)
	copies := min(b.options.Repeats, 5)
	var proxy *redistest.Proxy
	if err := b.host.attempt(func() { proxy = redistest.NewProxy(b.host, b.server.Addr()) }); err != nil {
		return err
	}
	if err := b.service.flush(ctx); err != nil {
		return err
	}

	taking := b.contenders(repeat, contender.AutoPipelined)
	var jobs []worker.Job
	for i := range len(taking) * copies {
		lock := worker.Lock{
			Contender: taking[i/copies].Name, Key: fmt.Sprintf("partition:%d", i), Lease: lease, Watch: true,
			Board: b.path, Slot: 2 * i, Hold: limit, UntilLost: true,
		}
		waiting := lock
		waiting.Slot, waiting.Hold = 2*i+1, 0
		waiting.UntilLost = false
		jobs = append(jobs,
			worker.Job{Servers: []string{proxy.Addr()}, Process: 2 * i, Goroutines: 1, Operations: 1, Lock: &lock},
			worker.Job{Servers: b.service.addresses, Process: 2*i + 1, Goroutines: 1, Operations: 1, Lock: &waiting, Delay: lease / 5})
	}
	for i := range jobs {
		b.board.Slot(i).Reset()
	}
	o, err := b.run(ctx, b.service, jobs, func(int64) error { return b.cut(ctx, proxy, len(jobs)) })
	if err != nil {
		return err
	}
	for i, c := range taking {
		for n := range copies {
			believes, waits := o.results[2*(i*copies+n)], o.results[2*(i*copies+n)+1]
			if len(believes.Turns) != 1 || len(waits.Turns) != 1 {
				b.record(partitionCase(lease), c.Name, Values{}, fmt.Sprintf("the holder or the other one failed: %q %q", believes.Errors, waits.Errors))
				continue
			}
			holder, next := believes.Turns[0], waits.Turns[0]
			both := float64(max(0, holder.Left-next.Entered)) / 1e6
			values := Values{overlap: both, takeover: float64(next.Entered-holder.Entered) / 1e6}
			var problems []string
			if next.Entered < holder.Entered {
				problems = append(problems, "the other one was first")
			}
			b.record(partitionCase(lease), c.Name, values, problems...)
		}
	}
	b.worst(partitionCase(lease))
	return nil
}

func partitionCase(lease time.Duration) string { return fmt.Sprintf("lease %v", lease) }

// cut cuts the holders off when all hold their keys, and restores the line when none believes in its
// lock any more and the others have had them.
func (b *Bench) cut(ctx context.Context, proxy *redistest.Proxy, slots int) error {
	if err := b.until(ctx, func() bool {
		for i := 0; i < slots; i += 2 {
			if b.board.Slot(i).Entries() == 0 {
				return false
			}
		}
		return true
	}); err != nil {
		return fmt.Errorf("wait for all holders: %w", err)
	}
	proxy.BlackHole()
	if err := b.until(ctx, func() bool {
		for i := range slots {
			if slot := b.board.Slot(i); slot.Entries() == 0 || slot.Held() {
				return false
			}
		}
		return true
	}); err != nil {
		return fmt.Errorf("wait for the end of all locks: %w", err)
	}
	proxy.CutAll()
	proxy.Resume()
	return nil
}

// until waits for a condition on the board.
func (b *Bench) until(ctx context.Context, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return nil
}

// worst writes the longest overlap of all repeats into each of them, so that it survives the median.
func (b *Bench) worst(name string) {
	for _, row := range b.report.Rows {
		if row.Scenario != b.current.Name || row.Case != name {
			continue
		}
		most := 0.0
		for _, v := range row.Repeats {
			most = max(most, v[overlap])
		}
		for _, v := range row.Repeats {
			v[longest] = most * 1000
		}
	}
}
