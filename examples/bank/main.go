// Bank shows what Interlock is for: accounts whose balances are read, worked on and written back by
// several replicas of one service.
//
//	go run ./examples/bank
//
// It needs nothing but Go. It starts a Redis inside the process, tells two stories with three
// replicas each, and prints what came out: two withdrawals at the same time, of which one is lost
// without guards and none with them; and one payment sent twenty times, which is made once. Then it
// serves until it is interrupted:
//
//	POST /accounts/{id}/withdraw   {"amount":200}            201 {"transaction":1,"account":"A","balance":800}
//	POST /accounts/{id}/transfer   {"to":"B","amount":300}   201 {"transaction":2,"account":"A","balance":500}
//	GET  /accounts/{id}                                      200 {"account":"A","balance":500,"executions":2}
//
// There are the accounts A, B and C, with 1000 each; executions counts the runs of a handler that
// changed the balance. A request with an Idempotency-Key is carried out once for its caller, who is
// the bearer token of the header Authorization, or "guest" without one. Everything else is answered
// with a problem (RFC 9457): 400 for what cannot be understood, 404 for an account that does not
// exist, 422 for too little money, 409 and 503 for what may be asked again later.
//
// Two processes with the same -redis are two replicas of one bank:
//
//	go run ./examples/bank -redis redis://localhost:6379 -http 127.0.0.1:8080
//	go run ./examples/bank -redis redis://localhost:6379 -http 127.0.0.1:8081 -story=false
//
// With -unguarded they lose money as easily as any others. The guards are in bank.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/google/uuid"
)

func main() {
	ctx, interrupt := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // so that a second one kills
		interrupt()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program: it ends when ctx does, and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	logger := log.New(stderr, "bank: ", 0)
	c, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		logger.Print(err)
		return 2
	}
	if err := c.run(ctx, stdout, logger); err != nil {
		logger.Print(err)
		return 1
	}
	return 0
}

func (c config) run(ctx context.Context, stdout io.Writer, logger *log.Logger) error {
	var listener net.Listener
	if !c.exit {
		// Before the story, so that an address that is taken is not reported after it.
		var err error
		if listener, err = listen(ctx, c.http); err != nil {
			return fmt.Errorf("-http %q: %w; give another address, port 0 picks a free one", c.http, err)
		}
		defer func() { _ = listener.Close() }() // closed already, unless the bank did not get to serve
	}
	if c.redis == "" {
		address, stop, err := startRedis()
		if err != nil {
			return fmt.Errorf("embedded Redis: %w", err)
		}
		defer stop()
		c.redis = address
	}
	if c.story {
		right, err := tell(ctx, c, stdout, logger)
		switch {
		case err != nil && ctx.Err() != nil && !c.exit:
			return nil // interrupted, which is how this program is meant to end
		case err != nil:
			return fmt.Errorf("story: %w", err)
		case !right && c.exit:
			return errors.New("story: the guards did not keep what they promise")
		}
	}
	if c.exit {
		return nil
	}
	// A signal that comes just now is for serve, which ends as it should.
	b, err := openBank(context.WithoutCancel(ctx), c, namespace{name: "bank"}, logger)
	if err != nil {
		return err
	}
	c.announce(stdout, listener.Addr())
	return serve(ctx, listener, b)
}

// announce prints where the bank is, and what to do there.
func (c config) announce(stdout io.Writer, address net.Addr) {
	accounts := "http://" + reachable(address) + "/accounts"
	_, _ = fmt.Fprintf(stdout, `
listening http=%[1]s
redis %[2]s

Run the first line twice: the second answer is a replay of the first.
curl -i %[3]s/A/withdraw -H 'Idempotency-Key: %[4]s' -H 'Content-Type: application/json' -d '{"amount":200}'
curl -i %[3]s/A/transfer -H 'Content-Type: application/json' -d '{"to":"B","amount":300}'
curl -i %[3]s/A

A second replica:
go run ./examples/bank -story=false -http 127.0.0.1:0 -redis '%[2]s'
`, address, redacted(c.redis), accounts, uuid.Must(uuid.NewV7()))
}

// reachable returns an address as clients on this machine can use it.
func reachable(address net.Addr) string {
	if tcp, ok := address.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return address.String()
}

// redacted returns a URL without what may be secret.
func redacted(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "(URL not readable)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
