package waiting

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// TestCloseLeavesNothing closes stores after and while somebody waits: no goroutine, connection or channel
// of them is left, and nobody is kept from the key.
func TestCloseLeavesNothing(t *testing.T) { //nolint:paralleltest // it looks at the goroutines of the process
	server := redistest.Start(t)
	w := siteOf(server).watch(t)
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	before := goroutines(t)
	one, other := w.store(nil), w.store(nil)
	holder := newMember(one, int64(long)).begin(lockKey)
	holder.awaitGrant(t)
	waiting := w.lineUp(t, lockKey, newMember(other, int64(long)))[0]
	succeed(t, other.Close())
	w.awaitChannels(t, 0)
	holder.release(t)
	waiting.awaitGrant(t)
	waiting.release(t)
	succeed(t, one.Close())
	w.awaitFree(t)
	redistest.Eventually(t, patience, func() bool { return goroutines(t) <= before }, "goroutines are left")
	if n := len(subscriptions(t, w)); n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
}

// goroutines counts those that run code of the store or the engine.
func goroutines(t *testing.T) int {
	t.Helper()
	var stacks bytes.Buffer
	succeed(t, pprof.Lookup("goroutine").WriteTo(&stacks, 2))
	n := 0
	for stack := range strings.SplitSeq(stacks.String(), "\n\n") {
		if strings.Contains(stack, "dedupe/redisstore.") || strings.Contains(stack, "interlock/dedupe.") {
			n++
		}
	}
	return n
}

// subscriptions returns the connections that listen.
func subscriptions(t *testing.T, w watch) (ids []string) {
	t.Helper()
	w.each(t, func(ctx context.Context, node *redis.Client) error {
		clients, err := node.Do(ctx, "CLIENT", "LIST", "TYPE", "pubsub").Text()
		for client := range strings.Lines(clients) {
			id, _, _ := strings.Cut(client, " ")
			ids = append(ids, id)
		}
		return err
	})
	return ids
}

// TestNoSubscription has requests that wait for nobody: they open no subscription, and cost two commands.
func TestNoSubscription(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	w := siteOf(server).watch(t)
	m := w.member(t, long)
	request := request{Kind: lock, Key: "key", Wait: wait}
	run := func() {
		a := m.begin(request)
		a.awaitGrant(t)
		a.release(t)
	}
	run() // the connection's greeting, and the scripts
	w.channels(t)
	before := server.ClientCommands()
	const requests = 20
	for range requests {
		run()
	}
	if sent := server.ClientCommands() - before; sent != 2*requests {
		t.Errorf("%d requests cost %d commands, want two each", requests, sent)
	}
	if n := len(w.channels(t)) + len(subscriptions(t, w)); n != 0 {
		t.Errorf("there are %d channels and subscriptions", n)
	}
}

// lingering has a subscription stay for a while after it was last needed, and no longer.
func lingering(t *testing.T, w watch) {
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	m := w.member(t, long)
	holder := w.member(t, long).begin(lockKey)
	holder.awaitGrant(t)
	waiting := w.lineUp(t, lockKey, m)[0]
	holder.release(t)
	waiting.awaitGrant(t) // and holds it: who has the key needs not listen
	released := time.Now()
	redistest.Eventually(t, 2*patience, func() bool { return len(w.channels(t)) == 0 }, "the subscription is still there")
	if lingered := time.Since(released); lingered < 10*time.Second {
		t.Errorf("the subscription was closed after %v", lingered)
	}
	waiting.release(t)
	w.awaitFree(t)
}

// commands returns how often the store has called a server. What tries subscriptions goes by time, and is
// not among it.
func commands(server *redistest.Server) int64 {
	counts := server.CommandCount()
	return counts["evalsha"] + counts["eval"]
}

// TestCommandsOfTurns counts what stores send for each turn of 4 processes: below one command where most
// turns are passed on within a process; two where none is, and a third where a word came late.
func TestCommandsOfTurns(t *testing.T) {
	t.Parallel()
	for name, turns := range map[string]struct {
		goroutines, cycles int
		hold               time.Duration
		most               float64
	}{
		"Neighbours":   {16, 15, 2 * time.Millisecond, 1},
		"NoNeighbours": {1, 40, 10 * time.Millisecond, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			w := siteOf(server).watch(t)
			children := make([]process, 4)
			for i := range children {
				children[i] = w.child(t, long)
			}
			holder := w.member(t, long).begin(request{Kind: lock, Key: "key"})
			holder.awaitGrant(t)
			attempts := w.lineUp(t, request{Kind: cycles, Key: "key", Wait: wait, Round: &round{
				Ledger: newLedger(t), Goroutines: turns.goroutines, Cycles: turns.cycles, Hold: turns.hold,
			}}, children...)
			before := commands(server)
			holder.release(t)
			for _, a := range attempts {
				a.awaitEnd(t, "done")
			}
			sent := float64(commands(server) - before)
			all := float64(len(children) * turns.goroutines * turns.cycles)
			if sent/all > turns.most {
				t.Errorf("%.0f turns cost %.0f commands, want at most %v each", all, sent, turns.most)
			}
			t.Logf("%.2f commands a turn", sent/all)
		})
	}
}
