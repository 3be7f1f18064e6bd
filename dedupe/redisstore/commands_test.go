package redisstore_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// TestCommandsOfARequest counts what the client sends: two commands for a request that runs, one for
// a replay, one for a conflict with another process, and none for one within the process.
func TestCommandsOfARequest(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client()
	key := keyfuncs.Header("Idempotency-Key")
	guards := func() (once, serialize *dedupe.Guard) {
		store := redisstore.New(client) // what is known in a process is known by store
		once, err := dedupe.Once(store, keyfuncs.Anyone, key)
		if err != nil {
			t.Fatal(err)
		}
		serialize, err = dedupe.Serialize(store, "account", key)
		if err != nil {
			t.Fatal(err)
		}
		return once, serialize
	}
	once, serialize := guards()
	onceElsewhere, serializeElsewhere := guards()

	during := func(http.ResponseWriter, *http.Request) {} // runs inside the handler
	handler := func(guard *dedupe.Guard) http.Handler {
		return httpmw.New(guard)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { during(w, r) }))
	}
	send := func(guard *dedupe.Guard, key string) int {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		handler(guard).ServeHTTP(w, r)
		return w.Code
	}
	count := func(name string, want int64, act func()) {
		t.Helper()
		before := server.ClientCommands()
		act()
		if sent := server.ClientCommands() - before; sent != want {
			t.Errorf("%s: the client sent %d commands, want %d", name, sent, want)
		}
	}
	// The connection's greeting, and the scripts, which each server is sent once.
	send(once, "warm up")
	send(serialize, "warm up")
	server.ClientCommands()

	count("Serialize", 2, func() { send(serialize, "a") })
	count("Once", 2, func() { send(once, "a") })
	count("replay", 1, func() { send(once, "a") })
	for name, guards := range map[string][2]*dedupe.Guard{
		"Serialize": {serialize, serializeElsewhere}, "Once": {once, onceElsewhere},
	} {
		during = func(http.ResponseWriter, *http.Request) {
			for i, want := range []int64{0, 1} {
				count(name+" in conflict", want, func() {
					if status := send(guards[i], "b"); status != http.StatusConflict {
						t.Errorf("%s: got %d while the first one runs, want 409", name, status)
					}
				})
			}
		}
		send(guards[0], "b")
	}
}
