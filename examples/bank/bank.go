package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// bank is one replica. It shares nothing with the others but what is in Redis.
type bank struct {
	ledger *ledger
	store  *redisstore.Store
	guards []*dedupe.Guard
	work   time.Duration
	served time.Duration // how long a request may take, its client's part included
	grace  time.Duration // how long its requests may take to finish
	log    *log.Logger
	http.Handler
}

// openBank returns a replica that is ready to serve, with its accounts opened.
func openBank(ctx context.Context, c config, n namespace, logger *log.Logger) (*bank, error) {
	client, err := connect(c.redis)
	if err != nil {
		return nil, fmt.Errorf("-redis: %w", err)
	}
	b := &bank{
		ledger: &ledger{client: client, namespace: n},
		work:   c.work,
		// A request may wait for its idempotency key and for its account, then works, and keeps
		// its lease for as long as it takes to tell Redis that it has finished.
		served: 2*c.wait + c.work + 5*time.Second,
		grace:  2*c.wait + c.work + c.lease + 5*time.Second,
		log:    logger,
	}
	if b.store, err = redisstore.Open(c.redis, redisstore.WithPrefix(n.name+":guards:")); err != nil {
		return nil, errors.Join(fmt.Errorf("-redis: %w", err), b.close(ctx))
	}
	if err := b.route(c); err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	if err := b.ledger.create(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the accounts: %w; is -redis %s the right one?", err, redacted(c.redis)), b.close(ctx))
	}
	return b, nil
}

// route puts the handlers behind the guards.
//
// The idempotency key comes first: a repeat is answered even while the account is busy with
// something else. Both account guards have the same lock domain, so that a withdrawal and a transfer
// exclude each other.
func (b *bank) route(c config) error {
	caller := keyfuncs.First(keyfuncs.Bearer(), keyfuncs.Const("guest"))
	lease, wait, retain := dedupe.WithLease(c.lease), dedupe.WithWait(c.wait), dedupe.WithRetention(c.retain)
	watch := dedupe.WithObserver(b.watch)

	once, err1 := dedupe.Once(b.store, caller, keyfuncs.Header("Idempotency-Key"), dedupe.WithOptionalKey(), retain, lease, wait, watch)
	account, err2 := dedupe.Serialize(b.store, "account", keyfuncs.Param("id"), lease, wait, watch)
	accounts, err3 := dedupe.Serialize(b.store, "account", keyfuncs.Param("id"), dedupe.WithAlso(keyfuncs.Field("to")), lease, wait, watch)
	oneAccount, err4 := httpmw.Config{Keep: keep}.Middleware(once, account)
	bothAccounts, err5 := httpmw.Config{Keep: keep}.Middleware(once, accounts)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	b.guards = []*dedupe.Guard{once, account, accounts}

	mux := http.NewServeMux()
	mux.Handle("GET /accounts/{id}", b.handle(b.show))
	if c.unguarded {
		mux.Handle("POST /accounts/{id}/withdraw", b.handle(b.withdraw))
		mux.Handle("POST /accounts/{id}/transfer", b.handle(b.transfer))
	} else {
		mux.Handle("POST /accounts/{id}/withdraw", oneAccount.Wrap(b.handle(b.withdraw)))
		mux.Handle("POST /accounts/{id}/transfer", bothAccounts.Wrap(b.handle(b.transfer)))
	}
	b.Handler = mux
	return nil
}

// watch logs what should not happen.
func (b *bank) watch(e dedupe.Event) {
	switch e.Kind {
	case dedupe.EventLeaseLost, dedupe.EventSettleFailed:
		b.log.Printf("%s: %s: %v: %v", e.Operation, e.Guard, e.Kind, e.Err)
	default:
	}
}

// close waits for the handlers that still run, and gives up the connections: in this order, for
// guards need the store until the last one has told it so.
func (b *bank) close(ctx context.Context) error {
	failed := []error{dedupe.Close(ctx, b.guards...)}
	if b.store != nil {
		failed = append(failed, b.store.Close())
	}
	return errors.Join(append(failed, b.ledger.client.Close())...)
}
