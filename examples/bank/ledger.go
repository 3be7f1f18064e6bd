package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// ledger keeps balances in Redis as plain numbers that are read and written back. Nothing in it
// notices that somebody else has written in between: that is what the guards are for.
type ledger struct {
	client redis.UniversalClient
	namespace
}

// namespace keeps banks apart that share a Redis.
type namespace struct {
	name string
	ttl  time.Duration // after which a bank is forgotten; 0 for never
}

// account is what GET /accounts/{id} answers.
type account struct {
	ID         string `json:"account"`
	Balance    int64  `json:"balance"`
	Executions int64  `json:"executions"`
}

// entry is the new balance of one account in a transaction.
type entry struct {
	id      string
	balance int64
}

const openingBalance = 1000

var accountIDs = []string{"A", "B", "C"}

// key names a value. The braces put a bank's keys into one slot of a cluster, so that a transaction
// can write to all of them.
func (n namespace) key(kind, id string) string { return "{" + n.name + "}:" + kind + ":" + id }

func (n namespace) keys() []string {
	keys := []string{n.key("transactions", "all")}
	for _, id := range accountIDs {
		keys = append(keys, n.key("balance", id), n.key("executions", id))
	}
	return keys
}

// create opens the accounts, except those that are there: another replica may have begun already.
func (l *ledger) create(ctx context.Context) error {
	_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, id := range accountIDs {
			p.SetNX(ctx, l.key("balance", id), openingBalance, l.ttl)
			p.SetNX(ctx, l.key("executions", id), 0, l.ttl)
		}
		p.SetNX(ctx, l.key("transactions", "all"), 0, l.ttl)
		return nil
	})
	return err
}

// remove deletes the bank.
func (l *ledger) remove(ctx context.Context) error { return l.client.Del(ctx, l.keys()...).Err() }

func (l *ledger) account(ctx context.Context, id string) (account, error) {
	values, err := l.client.MGet(ctx, l.key("balance", id), l.key("executions", id)).Result()
	if err != nil {
		return account{}, unavailable(err)
	}
	if values[0] == nil {
		return account{}, unknownAccount(id)
	}
	a := account{ID: id}
	for i, number := range []*int64{&a.Balance, &a.Executions} {
		text, _ := values[i].(string)
		if *number, err = strconv.ParseInt(text, 10, 64); err != nil {
			return account{}, unavailable(fmt.Errorf("account %q: %w", id, err))
		}
	}
	return a, nil
}

func (l *ledger) balance(ctx context.Context, id string) (int64, error) {
	balance, err := l.client.Get(ctx, l.key("balance", id)).Int64()
	switch {
	case errors.Is(err, redis.Nil):
		return 0, unknownAccount(id)
	case err != nil:
		return 0, unavailable(err)
	default:
		return balance, nil
	}
}

// post writes the new balances and returns the transaction's number. It writes all or nothing,
// which does not make the balances right: they were worked out from what was read before.
//
// A handler that stalls between its last look at ctx and this write can still outlive its lease. A
// database closes that gap by the lease's fence: UPDATE … WHERE fence <= $1.
func (l *ledger) post(ctx context.Context, entries ...entry) (int64, error) {
	var number *redis.IntCmd
	_, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, e := range entries {
			p.Set(ctx, l.key("balance", e.id), e.balance, redis.KeepTTL)
			p.Incr(ctx, l.key("executions", e.id))
		}
		number = p.Incr(ctx, l.key("transactions", "all"))
		return nil
	})
	if err != nil {
		return 0, uncertain(err)
	}
	return number.Val(), nil
}
