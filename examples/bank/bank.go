package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/keyfuncs"
)

// bank is one replica. It shares nothing with the others but what is in Redis.
type bank struct {
	ledger *ledger
	store  *redisstore.Store
	guards guards
	work   time.Duration
	served time.Duration // how long a request may take, its client's part included
	grace  time.Duration // how long its requests may take to finish
	log    *log.Logger
}

// guards are what requests are taken through, the outermost first. They are the same by whichever
// framework a request comes, and so are their key functions.
type guards struct {
	withdraw, transfer []*dedupe.Guard // none with -unguarded
	all                []*dedupe.Guard
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
	if b.guards, err = b.newGuards(c); err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	if err := b.ledger.create(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the accounts: %w; is -redis %s the right one?", err, redacted(c.redis)), b.close(ctx))
	}
	return b, nil
}

// newGuards returns the guards that all front ends share. "id" is a path parameter of net/http and
// Echo and a field of gRPC's messages, "to" a field of the body or of the message, and headers are
// gRPC's metadata.
//
// The idempotency key comes first: a repeat is answered even while the account is busy with
// something else. Both account guards have the same lock domain, so that a withdrawal and a transfer
// exclude each other.
func (b *bank) newGuards(c config) (guards, error) {
	caller := keyfuncs.First(keyfuncs.Bearer(), keyfuncs.Const("guest"))
	lease, wait, retain := dedupe.WithLease(c.lease), dedupe.WithWait(c.wait), dedupe.WithRetention(c.retain)
	watch := dedupe.WithObserver(b.watch)

	once, err1 := dedupe.Once(b.store, caller, keyfuncs.Header("Idempotency-Key"), dedupe.WithOptionalKey(), retain, lease, wait, watch)
	account, err2 := dedupe.Serialize(b.store, "account", keyfuncs.Param("id"), lease, wait, watch)
	accounts, err3 := dedupe.Serialize(b.store, "account", keyfuncs.Param("id"), dedupe.WithAlso(keyfuncs.Field("to")), lease, wait, watch)
	if err := errors.Join(err1, err2, err3); err != nil || c.unguarded {
		return guards{}, err
	}
	return guards{
		withdraw: []*dedupe.Guard{once, account},
		transfer: []*dedupe.Guard{once, accounts},
		all:      []*dedupe.Guard{once, account, accounts},
	}, nil
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
	failed := []error{dedupe.Close(ctx, b.guards.all...)}
	if b.store != nil {
		failed = append(failed, b.store.Close())
	}
	return errors.Join(append(failed, b.ledger.client.Close())...)
}
