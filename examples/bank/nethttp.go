package main

import (
	"errors"
	"net/http"

	"github.com/interlock-go/interlock/httpmw"
)

// newMux returns the JSON API for net/http.
func (b *bank) newMux() (http.Handler, error) {
	config := httpmw.Config{Keep: keepStatus}
	withdraw, err1 := config.Middleware(b.guards.withdraw...)
	transfer, err2 := config.Middleware(b.guards.transfer...)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /accounts/{id}", b.handler(b.getAccount))
	mux.Handle("POST /accounts/{id}/withdraw", withdraw.Wrap(b.handler(b.postWithdrawal)))
	mux.Handle("POST /accounts/{id}/transfer", transfer.Wrap(b.handler(b.postTransfer)))
	return mux, nil
}

func (b *bank) handler(serve endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r, r.PathValue("id")); err != nil {
			b.writeProblem(w, r.Pattern, err)
		}
	})
}
