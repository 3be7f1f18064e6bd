package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/dedupe/redisstore"
)

// config is what the flags say.
type config struct {
	http      string
	echo      string // "" for not served
	grpc      string // the same
	redis     string
	lease     time.Duration
	wait      time.Duration
	retain    time.Duration
	work      time.Duration
	unguarded bool
	story     bool
	exit      bool
}

// parseFlags returns flag.ErrHelp after it has written the help that was asked for. Any other error
// names the flag, its value and what to do about it.
func parseFlags(args []string, help io.Writer) (config, error) {
	c := config{
		lease:  30 * time.Second,
		wait:   2 * time.Second,
		retain: 24 * time.Hour,
		work:   100 * time.Millisecond,
	}
	flags := flag.NewFlagSet("bank", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are the caller's to print
	flags.StringVar(&c.http, "http", "127.0.0.1:8080", "serve on `host:port`; port 0 picks a free one")
	flags.StringVar(&c.echo, "echo", "127.0.0.1:0", "serve the same by Echo on `host:port`; \"\" does not")
	flags.StringVar(&c.grpc, "grpc", "127.0.0.1:0", "serve bank.v1.Bank by gRPC on `host:port`; \"\" does not")
	flags.StringVar(&c.redis, "redis", "", "keep balances and guards in the Redis at `url` (redis://, redis+cluster:// or redis+sentinel://);\nwithout it in one inside the process")
	flags.Var(&span{&c.lease, 50 * time.Millisecond, 15 * time.Minute}, "lease", "how long after a crash an account stays locked (`duration`)")
	flags.Var(&span{&c.wait, 0, 10 * time.Minute}, "wait", "how long a request waits for one that runs before it is refused (`duration`)")
	flags.Var(&span{&c.retain, time.Second, 90 * 24 * time.Hour}, "retain", "how long answers are kept for repeats (`duration`)")
	flags.Var(&span{&c.work, 0, 10 * time.Minute}, "work", "how long a request works between reading a balance and writing it (`duration`)")
	flags.BoolVar(&c.unguarded, "unguarded", false, "serve without guards")
	flags.BoolVar(&c.story, "story", true, "tell the stories before serving; -story=false does not")
	flags.BoolVar(&c.exit, "exit", false, "do not serve; the exit status is 0 if the guards did their work, and 1 if not")

	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprint(help, "Bank plays and serves accounts that several replicas change at the same time.\n\nUsage: bank [flags]\n")
		flags.SetOutput(help)
		flags.PrintDefaults()
		return c, err
	case err != nil:
		return c, fmt.Errorf("%w; -h lists the flags and what they take", err)
	case flags.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q: there are only flags; -h lists them", flags.Arg(0))
	}
	return c, c.check()
}

// check finds what is wrong with the values of flags that parsed.
func (c config) check() error {
	if c.exit && !c.story {
		return errors.New("-exit with -story=false: nothing would be left to do; leave one of them out")
	}
	if err := cmp.Or(
		checkAddress("http", c.http, "127.0.0.1:8080"),
		checkAddress("echo", cmp.Or(c.echo, "127.0.0.1:0"), `127.0.0.1:0, or "" not to serve Echo`),
		checkAddress("grpc", cmp.Or(c.grpc, "127.0.0.1:0"), `127.0.0.1:0, or "" not to serve gRPC`),
	); err != nil {
		return err
	}
	if c.redis == "" {
		return nil
	}
	// Open does not connect, and its errors carry the value without the password.
	store, err := redisstore.Open(c.redis)
	if err != nil {
		return fmt.Errorf("invalid value for flag -redis: %w; give a URL such as redis://localhost:6379, or leave the flag out", err)
	}
	return store.Close()
}

// checkAddress finds what is wrong with the address that a flag gives.
func checkAddress(flag, address, example string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("invalid value %q for flag -%s: give a host and a port from 0 to 65535, such as %s", address, flag, example)
	}
	return nil
}

// span is a flag's duration within bounds.
type span struct {
	value     *time.Duration
	low, high time.Duration
}

func (s *span) String() string {
	if s.value == nil { // package flag makes a zero value to learn what is not worth showing
		return ""
	}
	return s.value.String()
}

func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < s.low || d > s.high {
		return fmt.Errorf("give a duration from %v to %v, such as %v", s.low, s.high, s.value)
	}
	*s.value = d
	return nil
}
