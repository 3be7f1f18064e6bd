package main

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// What the bank does stands here, whichever framework a request came by: handlers take requests
// apart, and put receipts, accounts and problems into words.

// receipt is the answer to a request that moved money.
type receipt struct {
	Transaction int64  `json:"transaction"`
	Account     string `json:"account"`
	Balance     int64  `json:"balance"`
}

// account returns the state of an account.
func (b *bank) account(ctx context.Context, id string) (account, error) {
	if err := checkID(id); err != nil {
		return account{}, err
	}
	return b.ledger.account(ctx, id)
}

// withdraw takes money out of an account.
//
// It goes on when the client hangs up, as transfer does: whether money moved must not be a matter of
// luck, and a client that comes back with its idempotency key finds the answer. It stops when its
// lease is lost.
func (b *bank) withdraw(ctx context.Context, id string, amount int64) (receipt, error) {
	ctx = dedupe.Detach(ctx)
	if err := checkID(id); err != nil {
		return receipt{}, err
	}
	if err := checkAmount(amount); err != nil {
		return receipt{}, err
	}
	balance, err := b.ledger.balance(ctx, id)
	if err != nil {
		return receipt{}, err
	}
	if balance < amount {
		return receipt{}, errInsufficientFunds
	}
	if err := pause(ctx, b.work); err != nil {
		return receipt{}, interrupted(err)
	}
	balance -= amount
	number, err := b.ledger.post(ctx, entry{id, balance})
	if err != nil {
		return receipt{}, err
	}
	return receipt{number, id, balance}, nil
}

// transfer moves money from the account id to another one.
func (b *bank) transfer(ctx context.Context, id, other string, amount int64) (receipt, error) {
	ctx = dedupe.Detach(ctx)
	if err := checkID(id); err != nil {
		return receipt{}, err
	}
	switch other {
	case "":
		return receipt{}, badRequest(`"to" must name the account that gets the money`)
	case id:
		return receipt{}, badRequest(`"to" must be another account`)
	}
	if err := checkAmount(amount); err != nil {
		return receipt{}, err
	}
	from, err := b.ledger.balance(ctx, id)
	if err != nil {
		return receipt{}, err
	}
	to, err := b.ledger.balance(ctx, other)
	if err != nil {
		return receipt{}, err
	}
	if from < amount {
		return receipt{}, errInsufficientFunds
	}
	if err := pause(ctx, b.work); err != nil {
		return receipt{}, interrupted(err)
	}
	from, to = from-amount, to+amount
	number, err := b.ledger.post(ctx, entry{id, from}, entry{other, to})
	if err != nil {
		return receipt{}, err
	}
	return receipt{number, id, from}, nil
}

// pause stands for work that takes d. It returns early, with the reason, when ctx ends: whoever has
// lost the lease must not write any more.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx) // both may have happened
}

func checkID(id string) error {
	if id == "" {
		return badRequest(`"id" must name an account`)
	}
	return nil
}

// maxAmount is far more than there is in the bank, and far less than would overflow a balance.
const maxAmount = 1_000_000_000_000

func checkAmount(amount int64) error {
	if amount < 1 || amount > maxAmount {
		return badRequest(fmt.Sprintf(`"amount" must be an integer from 1 to %d`, maxAmount))
	}
	return nil
}
