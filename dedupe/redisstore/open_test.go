package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe/redisstore"
)

func TestConnectSettings(t *testing.T) {
	t.Parallel()
	const timeout = 123 * time.Millisecond
	connect := func(t *testing.T, url string) redis.UniversalClient {
		t.Helper()
		client, err := redisstore.Connect(url, timeout)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	type settings struct {
		honoured          bool
		retries           int
		dial, read, write time.Duration
	}
	fitting := settings{true, 1, timeout, timeout, timeout}
	of := func(t *testing.T, client redis.UniversalClient) settings {
		t.Helper()
		switch client := client.(type) {
		case *redis.Client:
			o := client.Options()
			return settings{o.ContextTimeoutEnabled, o.MaxRetries, o.DialTimeout, o.ReadTimeout, o.WriteTimeout}
		case *redis.ClusterClient:
			o := client.Options()
			return settings{o.ContextTimeoutEnabled, o.MaxRetries, o.DialTimeout, o.ReadTimeout, o.WriteTimeout}
		default:
			t.Fatalf("a client of type %T", client)
			return settings{}
		}
	}
	for url, want := range map[string]settings{
		"redis://127.0.0.1:6379/3":                              fitting,
		"rediss://user:secret@127.0.0.1:6379":                   fitting,
		"unix:///tmp/redis.sock":                                fitting,
		"redis+sentinel://127.0.0.1:26379?master_name=main":     fitting,
		"redis://127.0.0.1:6379?read_timeout=2s&max_retries=-1": {true, 0, timeout, 2 * time.Second, timeout},
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			if got := of(t, connect(t, url)); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	// A cluster's retries are counted by redirections too, and its client gives them other names.
	if got := of(t, connect(t, "redis+cluster://127.0.0.1:7000?addr=127.0.0.1:7001")); !got.honoured || got.read != timeout {
		t.Errorf("cluster: got %+v", got)
	}
}

func TestConnectErrorsNameTheFixAndNoPassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://user:secret@localhost":                                         "use redis, redis+cluster or redis+sentinel",
		"redis+sentinel://user:secret@localhost":                               "add ?master_name=NAME",
		"redis+other://user:secret@localhost":                                  "use redis, redis+cluster or redis+sentinel",
		"redis://user:secret@local host":                                       "write redis://host:6379",
		"redis://:se#cret@localhost":                                           "%23",
		"redis://user:12#secret@localhost":                                     "write %23",
		"redis://localhost?password=secret":                                    "password",
		"redis+sentinel://localhost?master_name=main&sentinel_password=secret": "sentinel_password",
		"redis+sentinel://localhost?master_name=main&addr=:secret@x":           "…",
		"redis://user:secret@localhost/x":                                      "database number",
		"redis://user:secret@localhost?nope=1":                                 "nope",
	} {
		_, err := redisstore.Connect(url, time.Second)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want one with %q and without the password", url, err, want)
		}
	}
}

func TestOptionsOutOfBounds(t *testing.T) {
	t.Parallel()
	for want, option := range map[string]redisstore.Option{
		"WithBudget(0s)":      redisstore.WithBudget(0),
		"WithBudget(1h0m0s)":  redisstore.WithBudget(time.Hour),
		`WithPrefix("a{b}c")`: redisstore.WithPrefix("a{b}c"),
	} {
		if _, err := redisstore.Open("redis://localhost", option); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open: got %v, want %s", err, want)
		}
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) {
					t.Errorf("New panicked with %q, want %s", text, want)
				}
			}()
			redisstore.New(redis.NewClient(&redis.Options{}), option)
		}()
	}
}
