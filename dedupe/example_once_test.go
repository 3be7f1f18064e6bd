package dedupe_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// withdraw sends a request as a client does that is not sure whether its first one arrived.
func withdraw(server *httptest.Server, amount string) {
	request, _ := http.NewRequest(http.MethodPost, server.URL+"/accounts/7/withdraw", strings.NewReader(amount))
	request.Header.Set("Idempotency-Key", "8e03978e-40d5-43dd-bc93-6894a57f9324")
	request.Header.Set("X-User", "alice")
	response, err := server.Client().Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	if response.StatusCode >= 400 {
		fmt.Println(response.StatusCode)
		return
	}
	body, _ := io.ReadAll(response.Body)
	fmt.Printf("%d %s replayed: %q\n", response.StatusCode, body, response.Header.Get("Idempotent-Replayed"))
}

// A request is sent twice: it runs once, and the second one gets the first one's answer. The same
// key with another amount is a mistake of the client, and is refused.
func ExampleOnce() {
	once, err := dedupe.Once(memstore.New(),
		keyfuncs.Header("X-User"), // set by the gateway that authenticated the caller
		keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		fmt.Println(err)
		return
	}

	balance := 1000
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{id}/withdraw", httpmw.New(once)(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			var amount int
			if _, err := fmt.Fscan(r.Body, &amount); err != nil {
				http.Error(w, "how much?", http.StatusUnprocessableEntity)
				return
			}
			balance -= amount
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, "balance %d", balance)
		})))
	server := httptest.NewServer(mux)
	defer server.Close()

	withdraw(server, "300")
	withdraw(server, "300")
	withdraw(server, "900")
	fmt.Println("in the bank:", balance)

	// Output:
	// 201 balance 700 replayed: ""
	// 201 balance 700 replayed: "true"
	// 422
	// in the bank: 700
}
