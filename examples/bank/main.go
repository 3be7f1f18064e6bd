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
// exist, 422 for too little money, 409 and 503 for what may be asked again later, and 504 if it is not
// known whether money has moved, to repeats as well.
//
// # Three frameworks
//
// This API is served by net/http (-http) and by Echo (-echo), and by gRPC (-grpc) the same as
// bank.v1.Bank, with reflection for grpcurl; its codes are INVALID_ARGUMENT, NOT_FOUND,
// FAILED_PRECONDITION, ABORTED and UNAVAILABLE, DEADLINE_EXCEEDED. The line "listening" tells the
// addresses. Unless told otherwise, Echo and gRPC take any free port, so that only -http can be in use
// already.
//
// The accounts are the same, and so are the guards with their key functions: what the handlers do is in
// transaction.go, and nethttp.go, echo.go and grpc.go only translate. So two writers of one account
// exclude each other whichever framework they come by, in one process or in several.
//
// An idempotency key does not reach that far. It belongs to one caller and one operation, and the
// operation is what the framework calls it: "POST /accounts/{id}/withdraw" for net/http,
// "POST /accounts/:id/withdraw" for Echo, "/bank.v1.Bank/Withdraw" for gRPC. A duplicate that is sent
// once over HTTP and once over gRPC, with the same key and caller, is therefore two operations, and
// both are carried out. It could not be otherwise: what is kept of the first is an answer of HTTP,
// which nobody can give to a client of gRPC, and their payloads cannot be compared. A client that
// repeats a request has to send it to where it sent it first.
//
// # Replicas
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
	"os"
	"os/signal"
	"syscall"
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
	var l listeners
	if !c.exit {
		// Before the story, so that an address that is taken is not reported after it.
		var err error
		if l, err = c.listen(ctx); err != nil {
			return err
		}
		defer l.close() // closed already, unless the bank did not get to serve
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
	c.announce(stdout, l)
	return b.serve(ctx, l)
}
