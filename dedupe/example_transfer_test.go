package dedupe_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// transfer moves 100 from one account to another.
func transfer(bank http.Handler, from, to string) {
	body := strings.NewReader(`{"to":"` + to + `"}`)
	answer := httptest.NewRecorder()
	bank.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/accounts/"+from+"/transfer", body))
	if answer.Code != http.StatusNoContent {
		fmt.Println(answer.Code, answer.Body)
	}
}

// A transfer locks the account in its path and the one in its body. The keys are taken in one fixed
// order, so that transfers that cross neither deadlock nor both fail.
func ExampleWithAlso() {
	accounts, err := dedupe.Serialize(memstore.New(), "account", keyfuncs.Param("id"),
		dedupe.WithAlso(keyfuncs.Field("to")),
		dedupe.WithWait(5*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}

	balance := map[string]*int{"7": new(1000), "8": new(1000)}
	bank := http.NewServeMux()
	bank.Handle("POST /accounts/{id}/transfer", httpmw.New(accounts)(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			var order struct{ To string }
			if json.NewDecoder(r.Body).Decode(&order) != nil || balance[order.To] == nil {
				http.Error(w, "to whom?", http.StatusUnprocessableEntity)
				return
			}
			*balance[r.PathValue("id")] -= 100
			*balance[order.To] += 100
			w.WriteHeader(http.StatusNoContent)
		})))

	var clients sync.WaitGroup
	for range 5 {
		clients.Go(func() { transfer(bank, "7", "8") })
		clients.Go(func() { transfer(bank, "8", "7") })
	}
	clients.Go(func() { transfer(bank, "7", "8") })
	clients.Wait()
	fmt.Println(*balance["7"], *balance["8"])

	// Output: 900 1100
}
