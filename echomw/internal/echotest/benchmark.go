package echotest

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// Benchmark measures an application in front of which middleware does nothing, a Serialize, and a
// Once, and the same with httpmw alone. What echomw adds is the difference of the differences.
func Benchmark[M any](b *testing.B, v Version[M]) {
	handler := func(c Context) error { return c.NoContent(http.StatusNoContent) }
	plain := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })

	b.Run("bare/echo", func(b *testing.B) {
		nothing := v.Middleware(func(_ Context, next func() error) error { return next() })
		benchmark(b, v.Serve(App[M]{Route: []M{nothing}, Handler: handler}))
	})
	b.Run("bare/http", func(b *testing.B) { benchmark(b, plain) })
	for name, guard := range map[string]func(testing.TB, ...dedupe.Option) *dedupe.Guard{"Serialize": serialize, "Once": Once} {
		b.Run(name+"/echo", func(b *testing.B) {
			benchmark(b, v.Serve(App[M]{Route: []M{v.New(guard(b))}, Handler: handler}))
		})
		b.Run(name+"/http", func(b *testing.B) { benchmark(b, httpmw.New(guard(b))(plain)) })
	}
}

// serialize is Account by a key that httpmw finds as well.
func serialize(t testing.TB, options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Serialize(memstore.New(), "account", keyfuncs.Header(keyHeader), options...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func benchmark(b *testing.B, handler http.Handler) {
	b.Helper()
	sent := []byte(`{"amount":10,"currency":"EUR"}`)
	body := &rewound{}
	r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/accounts/7/withdraw", body)
	r.Pattern = "POST /accounts/{id}/withdraw"
	r.ContentLength = int64(len(sent))
	key := []string{""}
	r.Header[keyHeader] = key
	w := &forgetful{header: make(http.Header)}

	number := 1_000_000
	b.ReportAllocs()
	for b.Loop() {
		number++
		key[0] = strconv.Itoa(number)
		clear(w.header)
		body.Reset(sent)
		handler.ServeHTTP(w, r)
	}
	if w.status != http.StatusNoContent {
		b.Fatalf("the last answer has the status %d", w.status)
	}
}

// forgetful takes an answer and keeps its status.
type forgetful struct {
	header http.Header
	status int
}

func (w *forgetful) Header() http.Header         { return w.header }
func (w *forgetful) Write(p []byte) (int, error) { return len(p), nil }
func (w *forgetful) WriteHeader(status int)      { w.status = status }
func (w *forgetful) Flush()                      {}

// rewound is a body that can be read again by the next iteration.
type rewound struct{ bytes.Reader }

func (*rewound) Close() error { return nil }
