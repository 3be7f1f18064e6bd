package httpmw_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
)

// look returns what a key function sees of requests that a mux takes to pattern.
func look(t *testing.T, config httpmw.Config, pattern string, r *http.Request, see func(dedupe.Request) string) (seen string) {
	t.Helper()
	guard := newSerialize(t, memstore.New(), func(r dedupe.Request) (string, error) {
		seen = see(r)
		return "k", nil
	}, dedupe.WithSafeMethods())
	mux := http.NewServeMux()
	mux.Handle(pattern, wrap(t, config, func(http.ResponseWriter, *http.Request) {}, guard))
	if got := record(mux, r); got.status != http.StatusOK {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	return seen
}

func TestOperation(t *testing.T) {
	for _, test := range []struct{ pattern, method, want string }{
		{"POST /orders/{id}", http.MethodPost, "POST /orders/{id}"},
		{"POST \t /orders/{id}", http.MethodPost, "POST /orders/{id}"},
		{"POST\t/orders/{id}", http.MethodPost, "POST /orders/{id}"},
		{"/orders/{id}", http.MethodPut, "PUT /orders/{id}"},
		{"GET /orders/{id}", http.MethodHead, "HEAD /orders/{id}"},
		{"POST example.com/orders/{id}", http.MethodPost, "POST example.com/orders/{id}"},
		{"example.com/orders/", http.MethodPost, "POST example.com/orders/"},
		{"/orders/{rest...}", "PURGE", "PURGE /orders/{rest...}"},
	} {
		got := look(t, httpmw.Config{}, test.pattern, httptest.NewRequest(test.method, "/orders/7?x=y", nil), dedupe.Request.Operation)
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.pattern, got, test.want)
		}
	}
}

// Without a pattern there is only the path to go by.
func TestOperationWithoutPattern(t *testing.T) {
	r := httpmw.NewRequest(httptest.NewRequest(http.MethodPost, "/orders/7?x=y", nil))
	if got := r.Operation(); got != "POST /orders/7" {
		t.Errorf("got %q", got)
	}
}

func TestOperationOfConfig(t *testing.T) {
	config := httpmw.Config{Operation: func(r *http.Request) string { return "order " + r.Method }}
	got := look(t, config, "/orders/{id}", httptest.NewRequest(http.MethodPost, "/orders/7", nil), dedupe.Request.Operation)
	if got != "order POST" {
		t.Errorf("got %q", got)
	}
}

// Keys of a Once count for one operation each.
func TestOnceIsBoundToTheOperation(t *testing.T) {
	once := newOnce(t, memstore.New())
	mux := http.NewServeMux()
	for _, pattern := range []string{"POST /a", "POST /b", "PUT /a"} {
		mux.Handle(pattern, wrap(t, httpmw.Config{}, func(w http.ResponseWriter, _ *http.Request) { write(w, pattern) }, once))
	}
	for _, replayed := range []bool{false, true} {
		for _, target := range []struct{ method, path string }{{"POST", "/a"}, {"POST", "/b"}, {"PUT", "/a"}} {
			r := httptest.NewRequest(target.method, target.path, nil)
			r.Header.Set(keyHeader, "k")
			record(mux, r).check(t, http.StatusOK, target.method+" "+target.path, replayed)
		}
	}
}

func param(name string) func(dedupe.Request) string {
	return func(r dedupe.Request) string {
		value, err := r.Param(name)
		return fmt.Sprint(value, err)
	}
}

func TestParam(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/orders/a%2Fb/x/y", nil)
	for name, want := range map[string]string{"id": "a/b<nil>", "rest": "x/y<nil>", "other": "<nil>", "ID": "<nil>"} {
		if got := look(t, httpmw.Config{}, "POST /orders/{id}/{rest...}", r.Clone(t.Context()), param(name)); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestParamOfConfig(t *testing.T) {
	config := httpmw.Config{Param: func(r *http.Request, name string) string { return r.Method + " " + name }}
	if got := look(t, config, "/", httptest.NewRequest(http.MethodPost, "/", nil), param("id")); got != "POST id<nil>" {
		t.Errorf("got %q", got)
	}
}

func TestHeaderLines(t *testing.T) {
	plain := httptest.NewRequest(http.MethodPost, "http://bank.example/", nil)
	plain.Header["X-Key"] = []string{"a, b", "", "c"}
	r := httpmw.NewRequest(plain)
	for name, want := range map[string][]string{
		"X-Key": {"a, b", "", "c"},
		"x-kEY": {"a, b", "", "c"},
		"X-No":  nil,
		"host":  {"bank.example"},
		"Host":  {"bank.example"},
	} {
		if got := r.Header(name); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestSafe(t *testing.T) {
	for method, want := range map[string]bool{
		"GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true, "": true,
		"POST": false, "PUT": false, "PATCH": false, "DELETE": false, "CONNECT": false, "QUERY": false, "get": false,
	} {
		plain := httptest.NewRequest(http.MethodGet, "/", nil)
		plain.Method = method
		if got := httpmw.NewRequest(plain).Safe(); got != want {
			t.Errorf("%q: got %t", method, got)
		}
	}
}

// Safe methods pass a Once, whose key and store they do not touch.
func TestSafeMethodsPass(t *testing.T) {
	handler := wrap(t, httpmw.Config{}, echo, newOnce(t, failing(dedupe.ErrStoreUnavailable)))
	record(handler, httptest.NewRequest(http.MethodGet, "/", nil)).check(t, http.StatusOK, "", false)
}

func TestContextAndValue(t *testing.T) {
	type userKey struct{}
	ctx := context.WithValue(t.Context(), userKey{}, "anna")
	r := httpmw.NewRequest(httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil))
	if r.Context() != ctx || r.Value(userKey{}) != "anna" || r.Value("user") != nil {
		t.Errorf("got %v, %v, %v", r.Context(), r.Value(userKey{}), r.Value("user"))
	}
}

// The payload has everything that tells one request from another, and is read once.
func TestPayload(t *testing.T) {
	body := newTracked(`{"to":7}`)
	plain := httptest.NewRequest(http.MethodPut, "/a%2Fb/c?x=1&y=%20", nil)
	plain.Body, plain.ContentLength = body, -1
	plain.Header["Content-Type"] = []string{"application/json", "text/plain"}
	r := httpmw.NewRequest(plain)
	for range 2 {
		got, err := r.Payload()
		if err != nil || got.Target != "PUT /a%2Fb/c?x=1&y=%20" || got.ContentType != "application/json" || string(got.Body) != `{"to":7}` {
			t.Errorf("got %q, %v", got, err)
		}
		if to, err := r.Field("to"); to != "7" || err != nil {
			t.Errorf("got %q, %v", to, err)
		}
	}
	if rest, _ := io.ReadAll(body); body.read != 8 || len(rest) > 0 {
		t.Errorf("%d bytes were read", body.read)
	}
}

// The target is what the client wrote, whatever became of the URL on the way in.
func TestPayloadHasTheTargetAsItWasSent(t *testing.T) {
	sent := httptest.NewRequest(http.MethodPost, "/v2/pay?", nil)
	made := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/v2/pay", RawQuery: "x=1"}}
	var stripped *http.Request
	http.StripPrefix("/v2", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stripped = r })).
		ServeHTTP(httptest.NewRecorder(), sent)
	for want, r := range map[string]*http.Request{"POST /v2/pay?": stripped, "POST /v2/pay?x=1": made} {
		got, err := httpmw.NewRequest(r).Payload()
		if err != nil || got.Target != want || got.ContentType != "" || len(got.Body) > 0 {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// One guard behind two prefixes must not take the requests of one for repeats of the other's.
func TestPrefixesAreToldApart(t *testing.T) {
	handler := wrap(t, httpmw.Config{}, echo, newOnce(t, memstore.New()))
	root := http.NewServeMux()
	for _, prefix := range []string{"/v1", "/v2"} {
		mux := http.NewServeMux()
		mux.Handle("POST /pay", handler)
		root.Handle(prefix+"/", http.StripPrefix(prefix, mux))
	}
	for _, step := range []struct {
		path string
		want int
	}{{"/v1/pay", http.StatusOK}, {"/v2/pay", http.StatusUnprocessableEntity}} {
		r := httptest.NewRequest(http.MethodPost, step.path, nil)
		r.Header.Set("Idempotency-Key", "key")
		if got := record(root, r); got.status != step.want {
			t.Errorf("%s: got %d, want %d", step.path, got.status, step.want)
		}
	}
}
