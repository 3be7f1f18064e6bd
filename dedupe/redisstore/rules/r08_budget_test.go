package rules

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// silence is a Redis that can fall silent, and ways to be its client.
type silence struct {
	begin, end func()
	clients    map[string]func(t *testing.T) dedupe.Store
}

// Redis falls silent as a whole: what it is asked it hears, new connections it accepts.

func silentServer(t *testing.T) silence {
	server := redistest.Start(t)
	return silence{server.Pause, server.Resume, map[string]func(*testing.T) dedupe.Store{
		"stock": func(t *testing.T) dedupe.Store { return redisstore.New(stockClient(t, server.Addr())) },
		"told to honour contexts": func(t *testing.T) dedupe.Store {
			client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
			t.Cleanup(func() { _ = client.Close() })
			return redisstore.New(client)
		},
		"without timeouts": func(t *testing.T) dedupe.Store {
			client := redis.NewClient(&redis.Options{Addr: server.Addr(), ReadTimeout: -1, WriteTimeout: -1, PoolSize: 10})
			t.Cleanup(func() { _ = client.Close() })
			return redisstore.New(client)
		},
		"opened": func(t *testing.T) dedupe.Store { return open(t, server.URL()) },
	}}
}

func silentNetwork(t *testing.T) silence {
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	return silence{proxy.BlackHole, func() { proxy.CutAll(); proxy.Resume() }, map[string]func(*testing.T) dedupe.Store{
		"stock":  func(t *testing.T) dedupe.Store { return redisstore.New(stockClient(t, proxy.Addr())) },
		"opened": func(t *testing.T) dedupe.Store { return open(t, proxy.URL()) },
	}}
}

func silentCluster(t *testing.T) silence {
	cluster := redistest.StartCluster(t, 1)
	node := cluster.Nodes()[0]
	return silence{node.Pause, node.Resume, map[string]func(*testing.T) dedupe.Store{
		"stock": func(t *testing.T) dedupe.Store {
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
			t.Cleanup(func() { _ = client.Close() })
			return redisstore.New(client)
		},
		"opened": func(t *testing.T) dedupe.Store { return open(t, "redis+cluster://"+node.Addr()) },
	}}
}

func silentSentinel(t *testing.T) silence {
	sentinel := redistest.StartSentinel(t)
	all := append(sentinel.Sentinels(), sentinel.Servers()...)
	each := func(act func(*redistest.Server)) func() {
		return func() {
			for _, server := range all {
				act(server)
			}
		}
	}
	return silence{each((*redistest.Server).Pause), each((*redistest.Server).Resume), map[string]func(*testing.T) dedupe.Store{
		"stock": func(t *testing.T) dedupe.Store {
			client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: sentinel.MasterName(), SentinelAddrs: sentinel.Addrs()})
			t.Cleanup(func() { _ = client.Close() })
			return redisstore.New(client)
		},
		"opened": func(t *testing.T) dedupe.Store {
			return open(t, "redis+sentinel://"+sentinel.Addrs()[0]+"?master_name="+sentinel.MasterName())
		},
	}}
}

func open(t *testing.T, url string) dedupe.Store {
	t.Helper()
	store, err := redisstore.Open(url)
	succeed(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// TestR8SilentRedis sends many requests at once to a Redis that says nothing, over clients that knew
// it before and clients that did not, and has a handler finish meanwhile. Every one is answered in
// time, and when Redis speaks again nothing is left of the waiting.
func TestR8SilentRedis(t *testing.T) { // not parallel: it measures, and counts goroutines
	for name, start := range map[string]func(*testing.T) silence{
		"server": silentServer, "network": silentNetwork, "cluster": silentCluster, "sentinel": silentSentinel,
	} {
		t.Run(name, func(t *testing.T) {
			silence := start(t)
			for kind, newStore := range silence.clients {
				t.Run(kind, func(t *testing.T) { testSilence(t, silence, newStore) })
			}
		})
	}
}

func testSilence(t *testing.T, silence silence, newStore func(*testing.T) dedupe.Store) {
	warm := newSilenced(t, newStore(t))
	warm.once.run(t, t.Name())
	cold := newSilenced(t, newStore(t))

	running, finish := make(chan struct{}), make(chan struct{})
	returned, answered := make(chan time.Time, 1), make(chan time.Time, 1)
	guard := newSerialize(t, newStore(t))
	go func() {
		defer func() { answered <- time.Now() }()
		_ = guard.Run(t.Context(), "running", func(context.Context) error {
			defer func() { returned <- time.Now() }()
			close(running)
			<-finish
			return nil
		})
	}()
	await(t, running, "the handler's start")
	silence.begin()
	defer silence.end()
	close(finish)
	end := await(t, returned, "the handler's end")
	if took := await(t, answered, "the answer").Sub(end); took > budget+slack {
		t.Errorf("after the handler it took %v", took)
	}
	for name, s := range map[string]*silenced{"warm": warm, "cold": cold} {
		took := s.burst(t, 200)
		t.Logf("%s: answered after %v to %v", name, took[0].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
		if slowest, median := took[len(took)-1], took[len(took)/2]; slowest > budget+slack || median > budget+slack/4 {
			t.Errorf("%s: an answer took %v, half of them more than %v", name, slowest, median)
		}
	}
	silence.end()
	start := time.Now()
	redistest.Eventually(t, 2*patience, func() bool { return len(waiting()) == 0 }, "goroutines are left")
	t.Logf("nothing was left after %v", time.Since(start).Round(time.Millisecond))
	warm.account.repeat(t, t.Name())
	cold.account.repeat(t, t.Name())
}

// silenced has a service behind each guard.
type silenced struct{ once, account *service }

func newSilenced(t *testing.T, store dedupe.Store) *silenced {
	return &silenced{newService(nil, newOnce(t, store)), newService(nil, newSerialize(t, store))}
}

// burst sends requests at once, and returns how long each took, sorted. They must all be refused.
func (s *silenced) burst(t *testing.T, requests int) []time.Duration {
	t.Helper()
	answers := make([]answer, requests)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			service := s.once
			if i%2 == 0 {
				service = s.account
			}
			answers[i] = service.post(t, strconv.Itoa(i))
		})
	}
	group.Wait()
	took := make([]time.Duration, requests)
	for i, a := range answers {
		took[i] = a.took
		if a.status != http.StatusServiceUnavailable || a.problem != "store-unavailable" {
			t.Fatalf("got %+v", a)
		}
	}
	slices.Sort(took)
	return took
}

// waiting returns the stacks of the goroutines that run for the engine or the store, and of those that
// their calls have started in the client.
func waiting() []string {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return slices.DeleteFunc(strings.Split(string(stacks), "\n\n"), func(stack string) bool {
		return !slices.ContainsFunc([]string{
			"interlock/dedupe.", "interlock/dedupe/redisstore.",
			".(*baseClient).process", ".(*ClusterClient).process", ".(*ConnPool).queuedNewConn",
		}, func(function string) bool { return strings.Contains(stack, function) })
	})
}
