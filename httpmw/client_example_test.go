package httpmw_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// flakyBank withdraws once for each key, and loses its first answer in a proxy on the way.
func flakyBank() *httptest.Server {
	once, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	balance := 100
	withdraw := httpmw.New(once)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		balance -= 10
		fmt.Fprintf(w, "withdrawn, %d left", balance)
	}))
	lost := false
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !lost {
			lost = true
			withdraw.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		withdraw.ServeHTTP(w, r)
	}))
}

// retrying stands for any of the many that send a request again after a 502.
type retrying struct{ base http.RoundTripper }

func (t retrying) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.base.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusBadGateway {
		return response, err
	}
	_ = response.Body.Close()
	again := r.Clone(r.Context())
	if again.Body, err = r.GetBody(); err != nil {
		return nil, err
	}
	return t.base.RoundTrip(again)
}

// withdrawOver withdraws from a bank of its own.
func withdrawOver(ctx context.Context, transport http.RoundTripper) string {
	bank := flakyBank()
	defer bank.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, bank.URL, strings.NewReader(`{"amount":10}`))
	if err != nil {
		return err.Error()
	}
	response, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%s, replayed %t, error %v", answer, httpmw.Replayed(response), err)
}

// The transport belongs outside what sends requests again. Below it, each attempt gets a key of its
// own, and money is withdrawn twice. Where the order cannot be had, a key in the context helps.
func ExampleNewTransport() {
	ctx := context.Background()
	fmt.Println("outside:", withdrawOver(ctx, httpmw.NewTransport(retrying{http.DefaultTransport})))
	fmt.Println("below:", withdrawOver(ctx, retrying{httpmw.NewTransport(http.DefaultTransport)}))

	ctx = dedupe.ContextWithKey(ctx, "0198c0de-7f3a-7c11-9d55-3b1e5f0a2c46")
	fmt.Println("below, with a key:", withdrawOver(ctx, retrying{httpmw.NewTransport(http.DefaultTransport)}))
	// Output:
	// outside: withdrawn, 90 left, replayed true, error <nil>
	// below: withdrawn, 80 left, replayed false, error <nil>
	// below, with a key: withdrawn, 90 left, replayed true, error <nil>
}
