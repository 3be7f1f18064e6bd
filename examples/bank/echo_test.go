package main

import (
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// An error whose answer a guard has kept comes to Echo's error handler twice. It is logged once.
func TestEchoReportsOnce(t *testing.T) {
	redis := miniredis.RunT(t)
	c := quick()
	c.redis = "redis://" + redis.Addr()
	var logged strings.Builder
	b, err := openBank(t.Context(), c, namespace{name: "bank"}, log.New(&logged, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	e, err := b.newEcho()
	if err != nil {
		t.Fatal(err)
	}
	redis.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
		if command == "EXEC" {
			c.WriteError("LOADING")
		}
		return command == "EXEC"
	})
	r := httptest.NewRequest(http.MethodPost, "/accounts/A/withdraw", strings.NewReader(`{"amount":1}`))
	r.Header.Set("Idempotency-Key", "k")
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	if want := "POST /accounts/:id/withdraw: the accounts did not confirm the transaction: "; w.Code != 504 || !strings.HasPrefix(logged.String(), want) || strings.Count(logged.String(), "\n") != 1 {
		t.Errorf("%d, logged: %s", w.Code, &logged)
	}
	if err := b.close(t.Context()); err != nil {
		t.Error(err)
	}
}
