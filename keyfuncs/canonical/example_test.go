package canonical_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"

	"github.com/interlock-go/interlock/keyfuncs/canonical"
)

// A client that serializes its request anew for each attempt gets the first answer all the same.
func Example() {
	once, err := dedupe.Once(memstore.New(), keyfuncs.Bearer(), keyfuncs.Header("Idempotency-Key"),
		dedupe.WithFingerprint(keyfuncs.All(keyfuncs.OptionalHeaders("Api-Version"), canonical.JSON)))
	if err != nil {
		log.Fatal(err)
	}
	runs := 0
	pay := httpmw.New(once)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs++
		fmt.Fprintf(w, "run %d", runs)
	}))
	send := func(caller, body string) {
		r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+caller)
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		pay.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			fmt.Println(w.Code)
			return
		}
		fmt.Println(w.Code, w.Body)
	}

	send("anna", `{"amount":200,"to":"DE02"}`)
	send("anna", `{"to": "DE02", "amount": 200.00}`)
	send("anna", `{"to": "DE02", "amount": 300}`)
	send("bert", `{"to": "DE02", "amount": 300}`)
	// Output:
	// 200 run 1
	// 200 run 1
	// 422
	// 200 run 2
}
