package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// handler is a request's handler that leaves it to its caller how to answer errors.
type handler func(http.ResponseWriter, *http.Request) error

func (b *bank) handle(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			b.writeProblem(w, r, err)
		}
	})
}

// receipt is the answer to a request that moved money.
type receipt struct {
	Transaction int64  `json:"transaction"`
	Account     string `json:"account"`
	Balance     int64  `json:"balance"`
}

func (b *bank) show(w http.ResponseWriter, r *http.Request) error {
	a, err := b.ledger.account(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, a)
}

// withdraw goes on when the client hangs up: whether money moved must not be a matter of luck, and a
// client that comes back with its idempotency key finds the answer. It stops when its lease is lost.
func (b *bank) withdraw(w http.ResponseWriter, r *http.Request) error {
	ctx, id := dedupe.Detach(r.Context()), r.PathValue("id")
	var order struct {
		Amount int64 `json:"amount"`
	}
	if err := readJSON(w, r, &order); err != nil {
		return err
	}
	if err := checkAmount(order.Amount); err != nil {
		return err
	}
	balance, err := b.ledger.balance(ctx, id)
	if err != nil {
		return err
	}
	if balance < order.Amount {
		return errInsufficientFunds
	}
	if err := pause(ctx, b.work); err != nil {
		return interrupted(err)
	}
	balance -= order.Amount
	number, err := b.ledger.post(ctx, entry{id, balance})
	if err != nil {
		return err
	}
	return created(w, receipt{number, id, balance})
}

func (b *bank) transfer(w http.ResponseWriter, r *http.Request) error {
	ctx, id := dedupe.Detach(r.Context()), r.PathValue("id")
	var order struct {
		To     string `json:"to"`
		Amount int64  `json:"amount"`
	}
	if err := readJSON(w, r, &order); err != nil {
		return err
	}
	switch order.To {
	case "":
		return badRequest(`"to" must name the account that gets the money`)
	case id:
		return badRequest(`"to" must be another account`)
	}
	if err := checkAmount(order.Amount); err != nil {
		return err
	}
	from, err := b.ledger.balance(ctx, id)
	if err != nil {
		return err
	}
	to, err := b.ledger.balance(ctx, order.To)
	if err != nil {
		return err
	}
	if from < order.Amount {
		return errInsufficientFunds
	}
	if err := pause(ctx, b.work); err != nil {
		return interrupted(err)
	}
	from, to = from-order.Amount, to+order.Amount
	number, err := b.ledger.post(ctx, entry{id, from}, entry{order.To, to})
	if err != nil {
		return err
	}
	return created(w, receipt{number, id, from})
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

// maxAmount is far more than there is in the bank, and far less than would overflow a balance.
const maxAmount = 1_000_000_000_000

func checkAmount(amount int64) error {
	if amount < 1 || amount > maxAmount {
		return badRequest(fmt.Sprintf(`"amount" must be an integer from 1 to %d`, maxAmount))
	}
	return nil
}

const maxBody = 64 << 10

// readJSON decodes a body that is one JSON value. Fields that nobody knows are ignored, so that
// clients may be newer than the bank.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	err := decoder.Decode(into)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		}
	}
	var wrongType *json.UnmarshalTypeError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return errBodyTooLarge
	case errors.As(err, &wrongType) && wrongType.Field != "":
		kind, _, _ := strings.Cut(wrongType.Value, " ") // what follows is the number itself
		return badRequest(fmt.Sprintf("%q must not be this %s", wrongType.Field, kind))
	default:
		return badRequest("the body must be one JSON object")
	}
}

func created(w http.ResponseWriter, r receipt) error {
	w.Header().Set("Location", fmt.Sprintf("/transactions/%d", r.Transaction))
	return writeJSON(w, http.StatusCreated, r)
}

func writeJSON(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that has gone comes back for the answer
	return nil
}
