package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/interlock-go/interlock/httpmw"
)

// problem is an error as clients are told it: application/problem+json, in the same form as the
// guards' refusals.
type problem struct {
	httpmw.Problem
	cause error // for the log; clients do not get to see it
}

func (p *problem) Error() string {
	if p.cause == nil {
		return p.Title
	}
	return p.Title + ": " + p.cause.Error()
}

func (p *problem) Unwrap() error { return p.cause }

func newProblem(status int, name, title, detail string) *problem {
	return &problem{Problem: httpmw.Problem{
		Type:   "https://github.com/interlock-go/interlock/blob/main/examples/bank/problem.go#" + name,
		Title:  title,
		Status: status,
		Detail: detail,
	}}
}

var (
	errInsufficientFunds = newProblem(http.StatusUnprocessableEntity, "insufficient-funds", "the account has not enough money", "")
	errBodyTooLarge      = newProblem(http.StatusRequestEntityTooLarge, "body-too-large", "the body is too large", fmt.Sprintf("at most %d bytes are read", maxBody))
)

func badRequest(detail string) error {
	return newProblem(http.StatusBadRequest, "bad-request", "the request cannot be understood", detail)
}

func unknownAccount(id string) error {
	return newProblem(http.StatusNotFound, "unknown-account", "the account does not exist", fmt.Sprintf("there is no account %q", id))
}

// unavailable: a balance could not be read, so nothing was written.
func unavailable(cause error) error {
	p := newProblem(http.StatusServiceUnavailable, "ledger-unavailable", "the accounts cannot be read", "nothing was changed")
	p.Retryable, p.cause = true, cause
	return p
}

// interrupted: the lease was lost before anything was written.
func interrupted(cause error) error {
	p := newProblem(http.StatusServiceUnavailable, "interrupted", "the account was not locked any more", "nothing was changed")
	p.Retryable, p.cause = true, cause
	return p
}

// uncertain: Redis did not confirm a write. To let a repeat run would be to write a second time, so this
// answer is kept (see keep).
func uncertain(cause error) error {
	p := newProblem(http.StatusGatewayTimeout, "outcome-uncertain", "the accounts did not confirm the transaction", "look at the balance before asking again")
	p.cause = cause
	return p
}

// keep is which answers a repeat gets again: the usual ones, and that of a transaction that may have
// been made.
func keep(status int, header http.Header) bool {
	return status == http.StatusGatewayTimeout || httpmw.DefaultKeep(status, header)
}

// writeProblem answers with err, and logs what clients are not told.
func (b *bank) writeProblem(w http.ResponseWriter, r *http.Request, err error) {
	var p *problem
	if !errors.As(err, &p) {
		p = newProblem(http.StatusInternalServerError, "internal", "the bank made a mistake", "")
		p.cause = err
	}
	if p.cause != nil {
		b.log.Printf("%s: %v", r.Pattern, p)
	}
	body, err := json.Marshal(p.Problem)
	if err != nil {
		panic(err) // strings, a number and a bool
	}
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	if p.Retryable {
		header.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
