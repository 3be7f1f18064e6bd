// Package bench measures locks and middleware on a Redis that it starts, and how the cost of
// Interlock grows with the work.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"

	"github.com/interlock-go/interlock/bench/internal/board"
	"github.com/interlock-go/interlock/bench/internal/contender"
)

// Options is what may be chosen.
type Options struct {
	Short      bool     // few operations for each row, to see that everything works
	Repeats    int      // of the scenarios that figures are taken from
	Only       []string // scenarios; all if empty
	Contenders []string // all if empty
	Progress   io.Writer
}

// Scenario is one kind of measurement.
type Scenario struct {
	Name, Title string
	About       string // a sentence or two above its table
	Growth      bool   // it shows how cost grows, and is done once
	Columns     []string
	measure     func(b *Bench, ctx context.Context, repeat int) error
}

// Scenarios lists the scenarios in their order.
func Scenarios() []Scenario {
	return []Scenario{cold, hot, burst, partition, middleware, memory, keys, waiters, processes, capacity}
}

// Bench is one run of the program.
type Bench struct {
	options Options
	service *service
	server  *redistest.Server
	host    *host
	board   *board.Board
	path    string // of the board
	report  *Report
	current *Scenario
}

// ErrRows is returned when rows did not measure what they claim.
var ErrRows = errors.New("rows did not measure what they claim")

// Run measures. With [ErrRows] the report is complete all the same.
func Run(ctx context.Context, options Options) (report *Report, err error) {
	chosen, err := choose(options)
	if err != nil {
		return nil, err
	}
	b := &Bench{options: options, host: &host{}}
	defer func() { err = errors.Join(err, b.host.close()) }()
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	for repeat := range options.Repeats {
		for _, scenario := range chosen {
			if repeat > 0 && scenario.Growth {
				continue
			}
			b.current = &scenario
			begun := time.Now()
			if err := scenario.measure(b, ctx, repeat); err != nil {
				return nil, fmt.Errorf("%s: %w", scenario.Name, err)
			}
			b.progress("%s took %v (repeat %d of %d)", scenario.Name, time.Since(begun).Round(time.Millisecond), repeat+1, options.Repeats)
		}
	}
	b.report.finish(chosen)
	if problems := b.report.Problems(); len(problems) > 0 {
		return b.report, fmt.Errorf("%w: %d problems", ErrRows, len(problems))
	}
	return b.report, nil
}

func choose(options Options) ([]Scenario, error) {
	if options.Repeats < 1 {
		return nil, fmt.Errorf("repeats must be at least 1, not %d", options.Repeats)
	}
	for _, name := range options.Contenders {
		if _, ok := contender.Named(name); !ok {
			return nil, fmt.Errorf("no contender is named %q", name)
		}
	}
	all := Scenarios()
	for _, name := range options.Only {
		if !slices.ContainsFunc(all, func(s Scenario) bool { return s.Name == name }) {
			return nil, fmt.Errorf("no scenario is named %q", name)
		}
	}
	if len(options.Only) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(s Scenario) bool { return !slices.Contains(options.Only, s.Name) }), nil
}

// start starts the server and makes the board.
func (b *Bench) start(ctx context.Context) (err error) {
	if err := b.host.attempt(func() {
		b.path = filepath.Join(b.host.TempDir(), "board")
		b.server = redistest.Start(b.host)
	}); err != nil {
		return fmt.Errorf("start Redis (is redis-server installed? apt-get install redis-server): %w", err)
	}
	b.service = newService([]string{b.server.Addr()})
	b.host.Cleanup(func() { _ = b.service.close() })
	if b.board, err = board.Create(b.path); err != nil {
		return err
	}
	b.host.Cleanup(func() { _ = b.board.Close() })
	roundTrip, err := b.service.roundTrip(ctx, 0)
	if err != nil {
		return err
	}
	b.report = newReport(b.options, b.server, roundTrip)
	return nil
}

// contenders returns who takes part, but for those named, beginning with another one at each repeat
// so that no one is always the first.
func (b *Bench) contenders(repeat int, except ...string) []contender.Contender {
	taking := slices.DeleteFunc(contender.All(), func(c contender.Contender) bool {
		return slices.Contains(except, c.Name) || (len(b.options.Contenders) > 0 && !slices.Contains(b.options.Contenders, c.Name))
	})
	if len(taking) == 0 {
		return nil
	}
	first := repeat % len(taking)
	return slices.Concat(taking[first:], taking[:first])
}

// pick returns long, or in short mode short.
func pick[T any](b *Bench, long, short T) T {
	if b.options.Short {
		return short
	}
	return long
}

func (b *Bench) progress(format string, args ...any) {
	if b.options.Progress != nil {
		_, _ = fmt.Fprintf(b.options.Progress, format+"\n", args...)
	}
}
