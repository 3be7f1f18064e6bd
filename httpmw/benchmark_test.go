package httpmw_test

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

// nullWriter takes an answer and forgets it.
type nullWriter struct{ header http.Header }

func (w *nullWriter) Header() http.Header         { return w.header }
func (w *nullWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *nullWriter) WriteHeader(int)             {}
func (w *nullWriter) Flush()                      {}

// rewound is a body that can be read again by the next iteration.
type rewound struct{ bytes.Reader }

func (*rewound) Close() error { return nil }

var (
	sentBody   = []byte(`{"amount":10,"currency":"EUR","to":"DE89 3704 0044 0532 0130 00"}`)
	answerBody = []byte(`{"id":"8e03978e","status":"done","balance":90}`)
)

func withdraw(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = jsonType
	_, _ = w.Write(answerBody)
}

var jsonType = []string{"application/json"}

// benchmark serves one request after the other, each with a key of its own unless they repeat. The
// making of keys costs one allocation and is part of every figure, the bare one's as well.
func benchmark(b *testing.B, repeat bool, guards ...*dedupe.Guard) {
	b.Helper()
	handler := httpmw.New(guards...)(http.HandlerFunc(withdraw))
	if guards == nil {
		handler = http.HandlerFunc(withdraw)
	}
	body := &rewound{}
	r := httptest.NewRequest(http.MethodPost, "/accounts/7/withdraw", body)
	r.Pattern = "POST /accounts/{id}/withdraw"
	r.ContentLength = int64(len(sentBody))
	r.Header.Set("Content-Type", "application/json")
	key := []string{""}
	r.Header[keyHeader] = key
	w := &nullWriter{header: make(http.Header)}

	number := 1_000_000
	serve := func() {
		if number++; repeat {
			number = 1_000_000
		}
		key[0] = strconv.Itoa(number)
		clear(w.header)
		body.Reset(sentBody)
		handler.ServeHTTP(w, r)
	}
	if repeat {
		serve() // what the others repeat
	}
	b.ReportAllocs()
	for b.Loop() {
		serve()
	}
	if len(w.header["Content-Type"]) != 1 || w.header["Content-Type"][0] != jsonType[0] {
		b.Fatalf("the last answer has %v", w.header)
	}
	if _, replayed := w.header["Idempotent-Replayed"]; replayed != repeat {
		b.Fatalf("replayed: %t", replayed)
	}
}

func BenchmarkBare(b *testing.B) { benchmark(b, false) }

func BenchmarkSerialize(b *testing.B) {
	benchmark(b, false, newSerialize(b, memstore.New(), keyfuncs.Header(keyHeader)))
}

func BenchmarkOnceFresh(b *testing.B) {
	benchmark(b, false, newOnce(b, memstore.New()))
}

func BenchmarkOnceReplay(b *testing.B) { benchmark(b, true, newOnce(b, memstore.New())) }

func BenchmarkOnceAroundSerialize(b *testing.B) {
	store := memstore.New()
	benchmark(b, false, newOnce(b, store), newSerialize(b, store, keyfuncs.Header(keyHeader)))
}
