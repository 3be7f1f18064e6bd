package httpmw_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// The examples serve requests without a network, and print what a client would see.
func serve(handler http.Handler, key, path string) http.Header {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"amount":10}`))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	return w.Header()
}

// A request that is sent twice runs once, and its answer is given twice.
func ExampleNew() {
	store := memstore.New() // in a service with replicas: redisstore.New(client)
	balance := 100
	withdraw := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		balance -= 10
		fmt.Fprintf(w, "withdrawn, %d left\n", balance)
	})

	once, err := dedupe.Once(store, keyfuncs.Anyone, keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	account, err := dedupe.Serialize(store, "account", keyfuncs.Param("id"))
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{id}/withdraw", httpmw.New(once, account)(withdraw))

	serve(mux, "a", "/accounts/7/withdraw")
	header := serve(mux, "a", "/accounts/7/withdraw")
	fmt.Println("Idempotent-Replayed:", header.Get("Idempotent-Replayed"))
	serve(mux, "b", "/accounts/7/withdraw")
	// Output:
	// 200 withdrawn, 90 left
	// 200 withdrawn, 90 left
	// Idempotent-Replayed: true
	// 200 withdrawn, 80 left
}

// A header of the service's own is replayed when it is named. Others belong to the first request.
func ExampleConfig_keepHeaders() {
	once, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	config := httpmw.Config{
		MaxAnswer:   64 << 10,
		KeepHeaders: []string{"X-Balance"},
	}
	middleware, err := config.Middleware(once)
	if err != nil {
		log.Fatal(err)
	}
	handler := middleware.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Balance", "90")
		w.Header().Set("X-Served-By", "replica 3")
		fmt.Fprintln(w, "withdrawn")
	}))

	for range 2 {
		header := serve(handler, "a", "/withdraw")
		fmt.Printf("balance %q, served by %q\n", header.Get("X-Balance"), header.Get("X-Served-By"))
	}
	// Output:
	// 200 withdrawn
	// balance "90", served by "replica 3"
	// 200 withdrawn
	// balance "90", served by ""
}

// A service that has its own form of errors renders refusals in it.
func ExampleConfig_refuse() {
	once, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	config := httpmw.Config{
		Refuse: func(w http.ResponseWriter, _ *http.Request, refusal *dedupe.Refusal) {
			problem := httpmw.NewProblem(refusal)
			if refusal.RetryAfter > 0 {
				w.Header().Set("Retry-After", httpmw.RetryAfter(refusal.RetryAfter))
			}
			http.Error(w, fmt.Sprintf("error %s: %s (%s)", refusal.Outcome.Reason(), problem.Title, problem.Detail), problem.Status)
		},
	}
	middleware, err := config.Middleware(once)
	if err != nil {
		log.Fatal(err)
	}
	handler := middleware.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

	serve(handler, "a, b", "/withdraw")
	// Output:
	// 400 error KEY_INVALID: the request's key cannot be used (header Idempotency-Key has a comma outside quotation marks)
}

// A router that does not use http.ServeMux is told apart by what it knows: here, by what it puts
// into the request's context.
func ExampleConfig_router() {
	type match struct {
		route  string
		params map[string]string
	}
	type matchKey struct{}
	matchOf := func(r *http.Request) match {
		m, _ := r.Context().Value(matchKey{}).(match)
		return m
	}
	router := func(next http.Handler) http.Handler { // knows one route: /accounts/:id/withdraw
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := strings.Split(r.URL.Path, "/")[2]
			m := match{"/accounts/:id/withdraw", map[string]string{"id": id}}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), matchKey{}, m)))
		})
	}

	once, err := dedupe.Once(memstore.New(), keyfuncs.Param("id"), keyfuncs.Header("Idempotency-Key"))
	if err != nil {
		log.Fatal(err)
	}
	config := httpmw.Config{
		Operation: func(r *http.Request) string { return r.Method + " " + matchOf(r).route },
		Param:     func(r *http.Request, name string) string { return matchOf(r).params[name] },
	}
	middleware, err := config.Middleware(once)
	if err != nil {
		log.Fatal(err)
	}
	runs := 0
	handler := router(middleware.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs++
		fmt.Fprintf(w, "run %d, account %s\n", runs, matchOf(r).params["id"])
	})))

	serve(handler, "a", "/accounts/7/withdraw")
	serve(handler, "a", "/accounts/7/withdraw")
	serve(handler, "a", "/accounts/8/withdraw")
	// Output:
	// 200 run 1, account 7
	// 200 run 1, account 7
	// 200 run 2, account 8
}

// A key function of one's own is tested with a request as the guards see it.
func ExampleNewRequest() {
	key := func(r dedupe.Request) (string, error) {
		id, err := r.Field("order.id")
		return "order " + id, err
	}
	body := strings.NewReader(`{"order":{"id":7}}`)
	fmt.Println(key(httpmw.NewRequest(httptest.NewRequest(http.MethodPost, "/", body))))
	// Output: order 7 <nil>
}
