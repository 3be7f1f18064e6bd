package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
)

const (
	replicas = 3
	repeats  = 20
)

// scene is a story as it came out.
type scene struct {
	title      string
	guards     string
	requests   int
	executions int64 // of the handler
	replays    int
	answers    int // different ones
	balance    int64
}

// tell plays the stories and prints how they came out. It reports whether the guarded ones came out
// right; the unguarded one has no right way to.
//
// They play in a namespace of their own, each on its own account, so that the bank that is served
// afterwards, and any other one in that Redis, is left as it was.
func tell(ctx context.Context, c config, stdout io.Writer, logger *log.Logger) (right bool, err error) {
	// All repeats of the payment have to come while its answer is kept, however late the last one
	// is told to ask again.
	c.retain = time.Minute + c.lease
	n := namespace{name: "bank-story-" + uuid.NewString(), ttl: time.Hour}
	client, err := connect(c.redis)
	if err != nil {
		return false, err
	}
	defer func() {
		l := ledger{client, n}
		failed := errors.Join(l.remove(context.WithoutCancel(ctx)), client.Close())
		err = cmp.Or(err, failed) // a Redis that cannot be reached has been reported by then
	}()
	// Clients ask again as long as they are told that it may help, which need not end.
	limit := time.Minute + 5*c.work + 5*c.wait + c.lease
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not told within %v", limit))
	defer cancel()

	guarded, unguarded := c, c
	guarded.unguarded, unguarded.unguarded = false, true
	plain, err := openFleet(ctx, unguarded, n, logger)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, plain.close()) }()
	safe, err := openFleet(ctx, guarded, n, logger)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, safe.close()) }()

	_, _ = fmt.Fprintf(stdout, "%d replicas; every account has %d at first\n\n", replicas, openingBalance)
	lost, err := plain.withdrawals(ctx, "A", "no")
	if err != nil {
		return false, err
	}
	kept, err := safe.withdrawals(ctx, "B", "yes")
	if err != nil {
		return false, err
	}
	paid, err := safe.payment(ctx, "C")
	if err != nil {
		return false, err
	}
	if err := printScenes(stdout, lost, kept, paid); err != nil {
		return false, err
	}
	_, err = fmt.Fprintf(stdout, "\nunguarded balance: %d\nguarded balance: %d\n", lost.balance, kept.balance)
	right = kept.balance == 500 && paid.executions == 1 && paid.answers == 1 && paid.balance == 900
	return right, err
}

// withdrawals takes 200 and 300 out of an account at the same time, at two replicas.
func (f *fleet) withdrawals(ctx context.Context, id, guards string) (scene, error) {
	amounts := [...]int{200, 300}
	s := scene{title: "200 and 300 withdrawn at once", guards: guards, requests: len(amounts)}
	return f.play(ctx, id, s, func(i int) (answer, error) {
		return f.client.pay(ctx, f.account(i, id)+"/withdraw", "", fmt.Sprintf(`{"amount":%d}`, amounts[i]))
	})
}

// payment sends one payment many times at once, to all replicas, as a client does that sees no
// answer.
func (f *fleet) payment(ctx context.Context, id string) (scene, error) {
	key, err := uuid.NewV7()
	if err != nil {
		return scene{}, err
	}
	s := scene{title: fmt.Sprintf("one payment of 100, sent %d times", repeats), guards: "yes", requests: repeats}
	return f.play(ctx, id, s, func(i int) (answer, error) {
		return f.client.pay(ctx, f.account(i, id)+"/withdraw", key.String(), `{"amount":100}`)
	})
}

// play sends the requests of a scene at the same time and looks at what came of them.
func (f *fleet) play(ctx context.Context, id string, s scene, send func(i int) (answer, error)) (scene, error) {
	answers, err := f.together(ctx, id, s.requests, send)
	if err != nil {
		return s, err
	}
	different := map[answer]bool{}
	for _, a := range answers {
		if a.replayed {
			s.replays++
		}
		a.replayed = false
		different[a] = true
	}
	s.answers = len(different)
	a, err := f.client.account(ctx, f.account(0, id))
	s.executions, s.balance = a.Executions, a.Balance
	return s, err
}

func printScenes(stdout io.Writer, scenes ...scene) error {
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "story\tguards\trequests\texecutions\treplays\tdistinct answers\tbalance")
	for _, s := range scenes {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\n", s.title, s.guards, s.requests, s.executions, s.replays, s.answers, s.balance)
	}
	return table.Flush()
}
