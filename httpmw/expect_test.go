package httpmw_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// A client that asks before it sends a body is answered without it where the body decides nothing.
func TestExpectContinueWithoutTheBody(t *testing.T) {
	byName := newOnceByName(t, memstore.New())
	const key = keyHeader + ": k\r\n"
	for name, test := range map[string]struct {
		guard  *dedupe.Guard
		header string
		want   string // how the answer begins
		holds  string // and what is in it
	}{
		"no key":        {newOnce(t, memstore.New()), "", "HTTP/1.1 400 ", "#key-missing"},
		"unusable key":  {newOnce(t, memstore.New()), keyHeader + ": a,b\r\n", "HTTP/1.1 400 ", "#key-invalid"},
		"two keys":      {newOnce(t, memstore.New()), key + key, "HTTP/1.1 400 ", "#key-invalid"},
		"locked":        {newSerialize(t, found(dedupe.StatusHeld, 1, nil), keyfuncs.Header(keyHeader)), key, "HTTP/1.1 409 ", "#resource-locked"},
		"no store":      {newSerialize(t, failing(dedupe.ErrStoreUnavailable), keyfuncs.Header(keyHeader)), key, "HTTP/1.1 503 ", "#store-unavailable"},
		"in flight":     {newOnceByName(t, found(dedupe.StatusHeld, 1, nil)), key, "HTTP/1.1 409 ", "#in-flight"},
		"handler's own": {newOnceByName(t, memstore.New()), key, "HTTP/1.1 200 ", "done"},
		"replay":        {byName, key, "HTTP/1.1 200 ", "Idempotent-Replayed: true"},
	} {
		t.Run(name, func(t *testing.T) {
			server := http1(t, wrap(t, httpmw.Config{}, func(w http.ResponseWriter, _ *http.Request) { write(w, "done") }, test.guard))
			ask := func() string {
				return string(exchange(t, server, "POST / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 5\r\n"+test.header+"\r\n"))
			}
			got := ask()
			if name == "replay" {
				got = ask()
			}
			if !strings.HasPrefix(got, test.want) || !strings.Contains(got, test.holds) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// newOnceByName is a Once whose fingerprint needs no body.
func newOnceByName(t *testing.T, store dedupe.Store) *dedupe.Guard {
	t.Helper()
	return newOnce(t, store, dedupe.WithFingerprint(func(dedupe.Request) ([]byte, error) { return []byte("same"), nil }))
}

// A chunked body says nothing of its length: it is asked for, and read up to the limit.
func TestExpectContinueChunked(t *testing.T) {
	server := http1(t, wrap(t, httpmw.Config{MaxBody: 10}, echo, newOnce(t, memstore.New())))
	for size, want := range map[int]string{10: "HTTP/1.1 200 ", 11: "HTTP/1.1 413 "} {
		got := string(exchange(t, server, fmt.Sprintf(
			"POST / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n%s: k%d\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
			keyHeader, size, size, page[:size])))
		if !strings.HasPrefix(got, "HTTP/1.1 100 Continue\r\n\r\n"+want) {
			t.Errorf("%d bytes: got %q", size, got)
		}
	}
}
