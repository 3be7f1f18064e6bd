package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// endpoint handles a request of the JSON API that is about the account id, whether net/http or Echo
// has routed it. It returns an error instead of an answer: how to render one is the framework's.
type endpoint func(w http.ResponseWriter, r *http.Request, id string) error

func (b *bank) getAccount(w http.ResponseWriter, r *http.Request, id string) error {
	a, err := b.account(r.Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, a)
}

func (b *bank) postWithdrawal(w http.ResponseWriter, r *http.Request, id string) error {
	var order struct {
		Amount int64 `json:"amount"`
	}
	if err := readJSON(w, r, &order); err != nil {
		return err
	}
	done, err := b.withdraw(r.Context(), id, order.Amount)
	if err != nil {
		return err
	}
	return writeReceipt(w, done)
}

func (b *bank) postTransfer(w http.ResponseWriter, r *http.Request, id string) error {
	var order struct {
		To     string `json:"to"`
		Amount int64  `json:"amount"`
	}
	if err := readJSON(w, r, &order); err != nil {
		return err
	}
	done, err := b.transfer(r.Context(), id, order.To, order.Amount)
	if err != nil {
		return err
	}
	return writeReceipt(w, done)
}

// maxBody is how much is read of a request, in bytes.
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

func writeReceipt(w http.ResponseWriter, r receipt) error {
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
