package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/httpmw"
)

// problem is an error as clients are told it, in the same form as the guards' refusals: over HTTP as
// application/problem+json, over gRPC as a status with details.
//
// It does not unwrap to its cause. The guards take the error of a handler whose context ended for that
// of one that gave up, and do not keep it; a problem is what the bank has decided.
type problem struct {
	httpmw.Problem
	code  codes.Code // Status in gRPC's terms
	name  string     // the end of Type
	cause error      // for the log; clients do not get to see it
}

func (p *problem) Error() string {
	if p.cause == nil {
		return p.Title
	}
	return p.Title + ": " + p.cause.Error()
}

// reason is the problem's name as gRPC's ErrorInfo has it.
func (p *problem) reason() string {
	return strings.ToUpper(strings.ReplaceAll(p.name, "-", "_"))
}

func newProblem(status int, code codes.Code, name, title, detail string) *problem {
	return &problem{
		Problem: httpmw.Problem{
			Type:   "https://github.com/interlock-go/interlock/blob/main/examples/bank/problem.go#" + name,
			Title:  title,
			Status: status,
			Detail: detail,
		},
		code: code,
		name: name,
	}
}

var (
	errInsufficientFunds = newProblem(http.StatusUnprocessableEntity, codes.FailedPrecondition,
		"insufficient-funds", "the account has not enough money", "")
	errBodyTooLarge = newProblem(http.StatusRequestEntityTooLarge, codes.ResourceExhausted,
		"body-too-large", "the body is too large", fmt.Sprintf("at most %d bytes are read", maxBody))
)

func badRequest(detail string) error {
	return newProblem(http.StatusBadRequest, codes.InvalidArgument,
		"bad-request", "the request cannot be understood", detail)
}

func unknownAccount(id string) error {
	return newProblem(http.StatusNotFound, codes.NotFound,
		"unknown-account", "the account does not exist", fmt.Sprintf("there is no account %q", id))
}

// unavailable: a balance could not be read, so nothing was written.
func unavailable(cause error) error {
	p := newProblem(http.StatusServiceUnavailable, codes.Unavailable,
		"ledger-unavailable", "the accounts cannot be read", "nothing was changed")
	p.Retryable, p.cause = true, cause
	return p
}

// interrupted: the lease was lost before anything was written.
func interrupted(cause error) error {
	p := newProblem(http.StatusServiceUnavailable, codes.Unavailable,
		"interrupted", "the account was not locked any more", "nothing was changed")
	p.Retryable, p.cause = true, cause
	return p
}

// How a client is told that a transaction may have been made, or not. gRPC says of its code that it is
// returned even if the operation has succeeded; nothing else in the bank answers with either.
const (
	uncertainStatus = http.StatusGatewayTimeout
	uncertainCode   = codes.DeadlineExceeded
)

// uncertain: Redis did not confirm a write. To let a repeat run would be to write a second time, so this
// answer is kept.
func uncertain(cause error) error {
	p := newProblem(uncertainStatus, uncertainCode,
		"outcome-uncertain", "the accounts did not confirm the transaction", "look at the balance before asking again")
	p.cause = cause
	return p
}

// keepStatus is which answers a repeat gets again: the usual ones, and that of a transaction that may
// have been made.
func keepStatus(status int, header http.Header) bool {
	return status == uncertainStatus || httpmw.DefaultKeep(status, header)
}

// keepCode is keepStatus for gRPC.
func keepCode(code codes.Code) bool { return code == uncertainCode || grpcmw.DefaultKeep(code) }

// problem returns what clients are told of err, and logs what they are not.
func (b *bank) problem(operation string, err error) *problem {
	var p *problem
	if !errors.As(err, &p) {
		p = newProblem(http.StatusInternalServerError, codes.Internal, "internal", "the bank made a mistake", "")
		p.cause = err
	}
	if p.cause != nil {
		b.log.Printf("%s: %v", operation, p)
	}
	return p
}

// retryAfter is when to repeat a request that may be repeated.
const retryAfter = time.Second

// writeProblem answers a request of the JSON API with err.
func (b *bank) writeProblem(w http.ResponseWriter, operation string, err error) {
	p := b.problem(operation, err)
	body, err := json.Marshal(p.Problem)
	if err != nil {
		panic(err) // strings, a number and a bool
	}
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	if p.Retryable {
		header.Set("Retry-After", httpmw.RetryAfter(retryAfter))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
