package dedupe_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/keyfuncs"
)

// Two writers of one account: each reads the balance, takes its time, and writes it back. Without
// the guard one of the withdrawals is lost, and 700 or 800 are left.
func ExampleSerialize() {
	store := memstore.New() // redisstore.New(client) where there are several processes
	account, err := dedupe.Serialize(store, "account", keyfuncs.Param("id"), dedupe.WithWait(2*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}

	balance := 1000
	withdraw := func(amount int) {
		err := account.Run(context.Background(), "7", func(context.Context) error {
			before := balance
			time.Sleep(10 * time.Millisecond)
			balance = before - amount
			return nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}

	var writers sync.WaitGroup
	writers.Go(func() { withdraw(300) })
	writers.Go(func() { withdraw(200) })
	writers.Wait()
	fmt.Println(balance)

	// Output: 500
}

// A scheduled job that two hosts start at once: one runs it. A host that crashes frees it with the
// end of its lease.
func ExampleGuard_Run() {
	store := memstore.New()
	start := func(host string, job func(context.Context) error) {
		guard, err := dedupe.Serialize(store, "job", nil) // one for each process
		if err != nil {
			fmt.Println(err)
			return
		}
		err = guard.Run(context.Background(), "main:hello", job)
		if errors.Is(err, dedupe.ErrLocked) {
			fmt.Println(host + ": another process is already running main:hello") // and os.Exit(1)
		}
	}

	start("host 1", func(context.Context) error {
		fmt.Println("host 1: hello")
		start("host 2", func(context.Context) error {
			fmt.Println("host 2: hello")
			return nil
		})
		return nil
	})

	// Output:
	// host 1: hello
	// host 2: another process is already running main:hello
}

// A cached value has expired, and everybody wants it at once: one computes it, the others wait for
// it and get the same.
func ExampleFetch() {
	cache, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, nil,
		dedupe.WithOperation("exchange rates"),
		dedupe.WithRetention(time.Minute), // how fresh a rate is
		dedupe.WithWait(5*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}

	var computed, same atomic.Int32
	var processes sync.WaitGroup
	for range 20 {
		processes.Go(func() {
			rate, err := dedupe.Fetch(context.Background(), cache, "EUR/USD", func(context.Context) (float64, error) {
				computed.Add(1)
				time.Sleep(10 * time.Millisecond)
				return 1.08, nil
			})
			if err == nil && rate == 1.08 {
				same.Add(1)
			}
		})
	}
	processes.Wait()
	fmt.Println("computed:", computed.Load())
	fmt.Println("got it:", same.Load())

	// Output:
	// computed: 1
	// got it: 20
}

// Ten workers want one thing and wait for at most 3 s each; with so many waiting already, the rest
// are told at once. Here the first one works until five have been told.
func ExampleWithWait() {
	crane, err := dedupe.Serialize(memstore.New(), "crane", nil,
		dedupe.WithWait(3*time.Second), dedupe.WithMaxWaiters(4))
	if err != nil {
		fmt.Println(err)
		return
	}

	var told sync.WaitGroup
	told.Add(5)
	var inTurn, turnedAway atomic.Int32
	var workers sync.WaitGroup
	for range 10 {
		workers.Go(func() {
			err := crane.Run(context.Background(), "north", func(context.Context) error {
				told.Wait()
				inTurn.Add(1)
				return nil
			})
			if errors.Is(err, dedupe.ErrLocked) {
				turnedAway.Add(1)
				told.Done()
			}
		})
	}
	workers.Wait()
	fmt.Println("had it in turn:", inTurn.Load())
	fmt.Println("were told that it is taken:", turnedAway.Load())

	// Output:
	// had it in turn: 5
	// were told that it is taken: 5
}

// "Is it still mine?", asked in the middle of long work. Whoever cannot ask in between watches the
// context, which is cancelled when the lease is lost.
func ExampleLease_Check() {
	guard, err := dedupe.Serialize(memstore.New(), "job", nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	var lease *dedupe.Lease
	err = guard.Run(context.Background(), "reindex", func(ctx context.Context) error {
		lease, _ = guard.Lease(ctx)
		for part := range 3 {
			if err := lease.Check(ctx); err != nil {
				return err // another one may be at it by now
			}
			fmt.Println("part", part+1, "of 3")
		}
		return nil
	})
	fmt.Println("done, with the error", err)
	fmt.Println("afterwards:", errors.Is(lease.Check(context.Background()), dedupe.ErrLeaseLost))

	// Output:
	// part 1 of 3
	// part 2 of 3
	// part 3 of 3
	// done, with the error <nil>
	// afterwards: true
}

// A holder that stalls past its lease can still be running when the next one starts. The fence is
// how the database refuses it: each row keeps the highest it has seen.
func ExampleLease_Fence() {
	account, err := dedupe.Serialize(memstore.New(), "account", keyfuncs.Param("id"))
	if err != nil {
		fmt.Println(err)
		return
	}

	var row struct {
		sync.Mutex

		balance int
		fence   uint64
	}
	row.balance = 1000
	// UPDATE accounts SET balance = $1, fence = $2 WHERE id = 7 AND fence <= $2
	update := func(balance int, fence uint64) (rows int) {
		row.Lock()
		defer row.Unlock()
		if row.fence > fence {
			return 0
		}
		row.balance, row.fence = balance, fence
		return 1
	}

	// The first holder reads the balance, and stalls until its lease is over.
	var late func() (rows int)
	_ = account.Run(context.Background(), "7", func(ctx context.Context) error {
		lease, _ := account.Lease(ctx)
		fence, balance := lease.Fence(), row.balance
		late = func() int { return update(balance-300, fence) }
		return nil
	})
	// The next one gets the key.
	_ = account.Run(context.Background(), "7", func(ctx context.Context) error {
		lease, _ := account.Lease(ctx)
		fmt.Println("rows changed by the second:", update(row.balance-200, lease.Fence()))
		return nil
	})
	// The first one wakes up.
	fmt.Println("rows changed by the first:", late())
	fmt.Println("balance:", row.balance)

	// Output:
	// rows changed by the second: 1
	// rows changed by the first: 0
	// balance: 800
}
