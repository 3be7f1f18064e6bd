package redisstore_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// BenchmarkAgainstFloor runs requests through ServeHTTP in turn with the least that anyone can do on
// Redis (SET NX PX, then compare-and-delete), each on a key of its own, so that both see the same
// machine at the same moment. "of-floor" is the floor's time over the request's.
func BenchmarkAgainstFloor(b *testing.B) {
	server := redistest.Start(b)
	client := server.Client()
	store := redisstore.New(client)
	key := keyfuncs.Header("Idempotency-Key")

	once, err := dedupe.Once(store, keyfuncs.Anyone, key)
	if err != nil {
		b.Fatal(err)
	}
	serialize, err := dedupe.Serialize(store, "account", key)
	if err != nil {
		b.Fatal(err)
	}
	for _, bench := range []struct {
		name  string
		guard *dedupe.Guard
	}{{"serialize", serialize}, {"once", once}} {
		b.Run(bench.name, func(b *testing.B) {
			handler := httpmw.New(bench.guard)(http.HandlerFunc(withdraw))
			request := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/accounts/A/withdraw", strings.NewReader(`{"amount":200}`))
			run := strconv.FormatInt(time.Now().UnixNano(), 36) + "-"
			var floor, guarded time.Duration
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				name := run + strconv.Itoa(n)
				start := time.Now()
				leastLock(b, client, name)
				middle := time.Now()
				request.Header["Idempotency-Key"] = []string{name}
				handler.ServeHTTP(&discard{header: http.Header{}}, request)
				floor += middle.Sub(start)
				guarded += time.Since(middle)
			}
			b.ReportMetric(float64(floor)/float64(guarded), "of-floor")
			b.ReportMetric(float64(floor.Nanoseconds())/float64(n), "floor-ns/op")
			b.ReportMetric(float64(guarded.Nanoseconds())/float64(n), "request-ns/op")
			b.ReportMetric(0, "ns/op") // of both together: it says nothing
		})
	}
}

var compareAndDelete = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`)

func leastLock(b *testing.B, client *redis.Client, key string) {
	ctx := context.Background()
	if won, err := client.SetNX(ctx, key, "token", 30*time.Second).Result(); err != nil || !won {
		b.Fatal(won, err)
	}
	if deleted, err := compareAndDelete.Run(ctx, client, []string{key}, "token").Int(); err != nil || deleted != 1 {
		b.Fatal(deleted, err)
	}
}

func withdraw(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/transactions/1")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(`{"transaction":1,"account":"A","balance":800}`))
}

// discard is a response writer that costs nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
