// Bench measures Interlock beside other lock libraries, in its middleware, and as the work grows.
//
//	go run . -o results                          everything, in less than ten minutes
//	go run . -short                              everything, with a few operations each
//	go run . -only cold,hot -repeats 1           some of it
//	go run . -only memory,keys,waiters,processes,capacity -update CAPACITY.md
//
// It starts the Redis servers and worker processes that it needs, and writes results.json, table.md
// and plots into the folder -o. It exits with 1 when a row did not measure what it claims, or nothing
// could be measured. README.md says what is measured, and how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/bench/internal/bench"
	"github.com/interlock-go/interlock/bench/internal/contender"
	"github.com/interlock-go/interlock/bench/internal/report"
	"github.com/interlock-go/interlock/bench/internal/worker"
)

func main() {
	if os.Getenv(worker.Variable) == "1" {
		os.Exit(worker.Main())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// settings is what the flags say.
type settings struct {
	bench.Options

	folder string
	update []string
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	list := func(into *[]string) func(string) error {
		return func(value string) error {
			*into = strings.Split(value, ",")
			return nil
		}
	}
	flags.StringVar(&s.folder, "o", "results", "`folder` for results.json, table.md and the plots")
	flags.BoolVar(&s.Short, "short", false, "a few operations for each row: shows that everything works, the numbers say nothing")
	flags.IntVar(&s.Repeats, "repeats", 0, "how often to measure what figures are taken from (default 5, with -short 1)")
	flags.Func("only", "`scenarios` to measure, separated by commas (default all: "+strings.Join(scenarios(), ",")+")", list(&s.Only))
	flags.Func("contenders", "`libraries` to measure, separated by commas (default all: "+strings.Join(contenders(), ",")+")", list(&s.Contenders))
	flags.Func("update", "`pages` to rewrite the marked tables of, separated by commas (see README.md)", list(&s.update))
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if s.Repeats == 0 {
		s.Repeats = 5
		if s.Short {
			s.Repeats = 1
		}
	}
	s.Progress = stderr
	return s, nil
}

func scenarios() (names []string) {
	for _, s := range bench.Scenarios() {
		names = append(names, s.Name)
	}
	return names
}

func contenders() (names []string) {
	for _, c := range contender.All() {
		names = append(names, c.Name)
	}
	return names
}

// run is the program. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	begun := time.Now()
	measured, err := bench.Run(ctx, s.Options)
	if err != nil && !errors.Is(err, bench.ErrRows) {
		_, _ = fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	written := report.Write(measured, s.folder)
	for _, page := range s.update {
		written = errors.Join(written, report.Update(measured, page))
	}
	_, _ = fmt.Fprint(stdout, report.Markdown(measured))
	_, _ = fmt.Fprintf(stderr, "\n%v; see %s\n", time.Since(begun).Round(time.Second), filepath.Join(s.folder, "table.md"))
	if err := errors.Join(err, written); err != nil {
		_, _ = fmt.Fprintln(stderr, "bench:", err)
		for _, problem := range measured.Problems() {
			_, _ = fmt.Fprintln(stderr, "  "+problem)
		}
		return 1
	}
	return 0
}
