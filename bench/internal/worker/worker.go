package worker

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/bench/internal/clock"
	"github.com/interlock-go/interlock/bench/internal/wire"
)

// Variable tells a process, by being "1" in its environment, that it is a worker.
const Variable = "INTERLOCK_BENCH_WORKER"

// operations carries out what a job consists of.
type operations interface {
	// warm connects everything and loads scripts, outside the measurement.
	warm(ctx context.Context) error
	// do carries out the n-th operation of a goroutine. It fills in turn but for Goroutine, Arrived
	// and Done.
	do(ctx context.Context, goroutine, n int, turn *Turn) error
	// stall returns true when operations wait for what nobody holds and will not get it, though not
	// before a time, and false when ctx is done.
	stall(ctx context.Context, notBefore time.Duration) bool
	// runs returns how often a handler ran.
	runs() int64
	close() error
}

// Main is a worker's life. It ends with the exit status.
func Main() int {
	in := gob.NewDecoder(bufio.NewReader(os.Stdin))
	out := bufio.NewWriter(os.Stdout)
	if err := serve(in, gob.NewEncoder(out), out.Flush); err != nil {
		fmt.Fprintln(os.Stderr, "bench worker:", err)
		return 1
	}
	return 0
}

func serve(in *gob.Decoder, out *gob.Encoder, flush func() error) error {
	var job Job
	if err := in.Decode(&job); err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	ctx := context.Background()
	counter := &wire.Counter{}
	work, err := open(job, counter)
	if err == nil {
		err = work.warm(ctx)
	}
	ready := Ready{}
	if err != nil {
		ready.Error = err.Error()
	}
	if err := errors.Join(out.Encode(ready), flush()); err != nil {
		return err
	}
	var start Start
	if err := in.Decode(&start); err != nil {
		return fmt.Errorf("read start: %w", err)
	}
	go dieWithParent(in)

	result := run(ctx, job, work, counter, start.At)
	return errors.Join(out.Encode(result), flush(), work.close())
}

// dieWithParent ends the process when its coordinator has gone, which closes the pipe.
func dieWithParent(in *gob.Decoder) {
	var nothing Start
	if err := in.Decode(&nothing); errors.Is(err, io.EOF) {
		os.Exit(1)
	}
}

func open(job Job, counter *wire.Counter) (operations, error) {
	switch {
	case job.Lock != nil:
		return openLocks(job, counter)
	case job.Handler != nil:
		return openHandler(job, counter)
	default:
		return nil, errors.New("a job without an operation")
	}
}

const reported = 3 // how many errors of each worker are reported

// run is the measurement.
func run(ctx context.Context, job Job, work operations, counter *wire.Counter, at int64) Result {
	limit := job.Operations
	if job.Duration > 0 {
		limit = math.MaxInt
	}
	each := make([]Result, job.Goroutines)
	for g := range each {
		each[g].Turns = make([]Turn, 0, min(limit, 4096))
	}
	runtime.GC()
	time.Sleep(clock.Until(at + int64(job.Delay)))

	// Not a deadline, which libraries would see and heed.
	ctx, cancel := context.WithCancel(ctx)
	defer time.AfterFunc(job.Duration+job.Grace, cancel).Stop()
	var watching sync.WaitGroup
	watching.Go(func() {
		if work.stall(ctx, job.Duration) {
			cancel()
		}
	})
	defer watching.Wait()
	defer cancel()

	var running sync.WaitGroup
	begin := make(chan struct{})
	var began, ends int64
	for g := range job.Goroutines {
		running.Go(func() {
			<-begin
			if job.Pace > 0 {
				time.Sleep(clock.Until(began + int64(g)*int64(job.Pace)))
			}
			each[g].repeat(ctx, work, g, limit, ends)
		})
	}
	before, runs := measure(counter), work.runs()
	began, ends = clock.Now(), math.MaxInt64
	if job.Duration > 0 {
		ends = began + int64(job.Duration)
	}
	close(begin)
	running.Wait()
	after := measure(counter)

	total := Result{
		Began:      began,
		Runs:       work.runs() - runs,
		Commands:   after.commands - before.commands,
		CPU:        after.cpu - before.cpu,
		Allocation: after.allocation - before.allocation,
	}
	for _, own := range each {
		total.Turns = append(total.Turns, own.Turns...)
		total.Failed += own.Failed
		total.Stalled += own.Stalled
		total.Stall = max(total.Stall, own.Stall)
		if room := reported - len(total.Errors); room > 0 {
			total.Errors = append(total.Errors, own.Errors[:min(room, len(own.Errors))]...)
		}
	}
	return total
}

// repeat carries out one goroutine's operations. Those that have begun at ends are finished.
func (r *Result) repeat(ctx context.Context, work operations, goroutine, limit int, ends int64) {
	for n := 0; n < limit && clock.Now() < ends; n++ {
		turn := Turn{Goroutine: int32(goroutine), Arrived: clock.Now()} //nolint:gosec // thousands at most
		err := work.do(ctx, goroutine, n, &turn)
		switch {
		case err == nil:
			turn.Done = clock.Now()
			r.Turns = append(r.Turns, turn)
		case ctx.Err() != nil:
			r.Stalled++
			r.Stall = max(r.Stall, clock.Now()-turn.Arrived)
			return
		default:
			r.fail(err)
		}
	}
}

func (r *Result) fail(err error) {
	if r.Failed++; len(r.Errors) < reported {
		r.Errors = append(r.Errors, err.Error())
	}
	time.Sleep(time.Millisecond) // a server that is gone is not to be asked in a tight loop
}

// usage is what the process has used so far.
type usage struct {
	commands   int64
	cpu        time.Duration
	allocation uint64
}

func measure(counter *wire.Counter) usage {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		panic("bench worker: getrusage: " + err.Error())
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{counter.Commands(), time.Duration(r.Utime.Nano() + r.Stime.Nano()), m.Mallocs}
}
