// Package fleet runs jobs in worker processes: this same binary, started again.
package fleet

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/bench/internal/clock"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

// Hooks are called by Run; each may be nil.
type Hooks struct {
	Before func() error            // when all workers are connected and idle
	During func(start int64) error // beside the measurement, which begins at start
	After  func() error            // when all have reported
}

const (
	lead     = 50 * time.Millisecond // for the start to reach everybody
	patience = 2 * time.Minute       // for everything beyond the jobs' duration
)

// Run starts a process for each job, lets all begin at the same time, and returns their results in
// the order of jobs. No process is left when it returns.
func Run(ctx context.Context, jobs []worker.Job, hooks Hooks) (start int64, results []worker.Result, err error) {
	var longest time.Duration
	for _, job := range jobs {
		longest = max(longest, job.Delay+job.Duration)
	}
	ctx, cancel := context.WithTimeout(ctx, longest+patience)
	defer cancel()

	processes := make([]*process, len(jobs))
	defer func() {
		for _, p := range processes {
			if p != nil {
				err = errors.Join(err, p.end(err != nil))
			}
		}
	}()
	for i, job := range jobs {
		if processes[i], err = begin(ctx, job); err != nil {
			return 0, nil, err
		}
	}
	if err := each(processes, (*process).awaitReady); err != nil {
		return 0, nil, err
	}
	if err := call(hooks.Before); err != nil {
		return 0, nil, err
	}

	start = clock.Now() + int64(lead)
	results = make([]worker.Result, len(jobs))
	group := errgroup.Group{}
	for i, p := range processes {
		group.Go(func() error {
			var err error
			results[i], err = p.measure(start)
			return err
		})
	}
	if hooks.During != nil {
		group.Go(func() error { return hooks.During(start) })
	}
	if err := group.Wait(); err != nil {
		return 0, nil, err
	}
	return start, results, call(hooks.After)
}

func call(hook func() error) error {
	if hook == nil {
		return nil
	}
	return hook()
}

func each(processes []*process, f func(*process) error) error {
	var group errgroup.Group
	for _, p := range processes {
		group.Go(func() error { return f(p) })
	}
	return group.Wait()
}

// process is one worker.
type process struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	in      *gob.Decoder
	out     *gob.Encoder
	stderr  bytes.Buffer
}

func begin(ctx context.Context, job worker.Job) (*process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.CommandContext(ctx, binary)} //nolint:gosec // it is this very binary
	p.command.Env = append(os.Environ(), worker.Variable+"=1")
	p.command.Stderr = &p.stderr
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	p.in, p.out = gob.NewDecoder(stdout), gob.NewEncoder(p.stdin)
	if err := p.out.Encode(job); err != nil {
		return p, fmt.Errorf("send job: %w", err)
	}
	return p, nil
}

func (p *process) awaitReady() error {
	var ready worker.Ready
	if err := p.in.Decode(&ready); err != nil {
		return p.explain("worker did not get ready", err)
	}
	if ready.Error != "" {
		return fmt.Errorf("worker did not get ready: %s", ready.Error)
	}
	return nil
}

func (p *process) measure(start int64) (worker.Result, error) {
	var result worker.Result
	if err := p.out.Encode(worker.Start{At: start}); err != nil {
		return result, p.explain("start worker", err)
	}
	if err := p.in.Decode(&result); err != nil {
		return result, p.explain("worker gave no result", err)
	}
	return result, nil
}

// explain adds what the worker said before it died.
func (p *process) explain(what string, err error) error {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
	return fmt.Errorf("%s: %w: %s", what, err, strings.TrimSpace(p.stderr.String()))
}

// end waits for the process, which has nothing more to do, or kills it.
func (p *process) end(kill bool) error {
	if kill {
		_ = p.command.Process.Kill()
	}
	err := p.command.Wait()
	_ = p.stdin.Close()
	if kill || p.command.ProcessState == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("worker: %w: %s", err, strings.TrimSpace(p.stderr.String()))
	}
	return nil
}
