package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/bench/internal/clock"
	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

var waiters = Scenario{
	Name:  "waiters",
	Title: "Number of waiters for one key",
	About: "One process holds the key; the others wait, and then take it in turn without holding it. *Local* ones wait in one process; *remote* ones have a guard, a client and " +
		"connections each, as if each were a process. Commands and memory are those of the stretch in which all wait and nothing happens; the rest is of the whole.",
	Growth:  true,
	Columns: []string{opsPerSecond, longest, drained, commands, waitCommands, bytesPerWaiter, clientCPU, serverCPU, inversions, violations},
	measure: (*Bench).measureWaiters,
}

func (b *Bench) measureWaiters(ctx context.Context, _ int) error {
	for _, remote := range []bool{false, true} {
		for _, count := range pick(b, []int{1, 10, 100, 500, 2000}, []int{1, 16}) {
			if err := b.measureWaiting(ctx, count, remote); err != nil {
				return err
			}
		}
	}
	return nil
}

const remoteProcesses = 8

func (b *Bench) measureWaiting(ctx context.Context, count int, remote bool) error {
	if err := b.service.flush(ctx); err != nil {
		return err
	}
	lock := worker.Lock{Contender: contender.Interlock, Key: "waiters", Board: b.path, Apart: remote}
	holding := lock
	holding.Hold, holding.Apart = pick(b, 2*time.Second, 600*time.Millisecond), false
	jobs := []worker.Job{{Servers: b.service.addresses, Goroutines: 1, Operations: 1, Lock: &holding}}
	name, spread := "local", 1
	if remote {
		name, spread = "remote", min(remoteProcesses, count)
	}
	for i := range spread {
		jobs = append(jobs, worker.Job{
			Servers: b.service.addresses, Process: i + 1, Operations: 1, Lock: &lock, Delay: holding.Hold / 10,
			Goroutines: count/spread + min(1, max(0, count%spread-i)),
		})
	}

	var begin, end info
	o, err := b.run(ctx, b.service, jobs, func(start int64) (err error) {
		time.Sleep(clock.Until(start + int64(holding.Hold/2)))
		if begin, err = b.service.info(ctx); err != nil {
			return err
		}
		time.Sleep(clock.Until(start + int64(holding.Hold*9/10)))
		end, err = b.service.info(ctx)
		return err
	})
	if err != nil {
		return err
	}
	released := o.results[0].Turns[0].Left
	values := o.values(func(t worker.Turn) int64 { return max(0, t.Entered-max(t.Arrived, released)) })
	problems := append(o.failures(), b.exclusion(o, values)...)
	last := released
	for _, r := range o.results {
		for _, t := range r.Turns {
			last = max(last, t.Done)
		}
	}
	values[drained] = float64(last-released) / 1e6
	values[opsPerSecond] = float64(count) / time.Duration(max(1, last-released)).Seconds()
	values[waitCommands] = rounded(float64(end.commands-begin.commands) / (holding.Hold * 4 / 10).Seconds() / float64(count))
	values[bytesPerWaiter] = float64(end.memory-o.before.memory) / float64(count)
	b.record(fmt.Sprintf("%d %s", count, name), contender.Interlock, values, problems...)
	return nil
}
