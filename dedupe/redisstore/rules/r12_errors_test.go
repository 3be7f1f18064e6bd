package rules

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// serverErrors are what Redis says when it will not do as it is asked, for reasons of its own.
var serverErrors = map[string]string{
	"NOSCRIPT":    "No matching script. Please use EVAL.",
	"LOADING":     "Redis is loading the dataset in memory",
	"READONLY":    "You can't write against a read only replica.",
	"CLUSTERDOWN": "The cluster is down",
	"TRYAGAIN":    "Multiple keys request during rehashing of slot",
	"MASTERDOWN":  "Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"OOM":         "command not allowed when used memory > 'maxmemory'.",
	"NOPERM":      "this user has no permissions to run the 'evalsha' command",
	"NOAUTH":      "Authentication required.",
	"MISCONF":     "Redis is configured to save RDB snapshots, but it is currently unable to persist on disk.",
	"BUSY":        "Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"NOREPLICAS":  "Not enough good replicas to write.",
	"ERR":         "max number of clients reached",
}

// TestR12ServerErrors has each operation told each error, once and for as long as it asks.
func TestR12ServerErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ofScripts := func(args []string) bool { return strings.HasPrefix(strings.ToLower(args[0]), "eval") }
	for code, text := range serverErrors {
		for often, nth := range map[string]int{"once": 1, "always": 0} {
			for name, operation := range operations {
				t.Run(code+"/"+often+"/"+name, func(t *testing.T) {
					o := newOwner(r.store)
					o.grant(t, long)
					rule := r.proxy.On(ofScripts, nth, redistest.ReplyWith("-"+code+" "+text+"\r\n"))
					start := time.Now()
					err := operation(t.Context(), o)
					if took := time.Since(start); took > budget+slack {
						t.Errorf("it took %v", took)
					}
					r.proxy.Remove(rule)
					if rule.Fired() == 0 {
						t.Fatal("the error did not occur")
					}
					if err == nil && nth == 1 {
						return
					}
					match(t, err, dedupe.ErrStoreUnavailable)
					if nth == 1 && code == "NOSCRIPT" {
						t.Errorf("a script that is not loaded is not sent: %v", err)
					}
					succeed(t, operation(t.Context(), o))
				})
			}
		}
	}
}

// TestR12NotToldToClients looks for the server's words in a refusal.
func TestR12NotToldToClients(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := newService(nil, newOnce(t, r.store), newSerialize(t, r.store))
	for code, text := range serverErrors {
		rule := r.proxy.On(redistest.Any, 0, redistest.ReplyWith("-"+code+" "+text+"\r\n"))
		a := s.refuse(t, code, http.StatusServiceUnavailable, "store-unavailable")
		r.proxy.Remove(rule)
		if strings.Contains(a.body, code) || strings.Contains(a.body, text) || strings.Contains(a.body, r.proxy.Addr()) {
			t.Errorf("the client is told %s", a.body)
		}
	}
}

// TestR12ScriptFlush empties the script cache before each operation.
func TestR12ScriptFlush(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, operation := range operations {
		o := newOwner(r.store)
		o.grant(t, long)
		succeed(t, r.direct.ScriptFlush(t.Context()).Err())
		if err := operation(t.Context(), o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	once, account := newService(nil, newOnce(t, r.store)), newService(nil, newSerialize(t, r.store))
	succeed(t, r.direct.ScriptFlush(t.Context()).Err())
	once.replay(t, "key", once.run(t, "key"))
	account.run(t, "key")
}

// TestR12Restart restarts the server, which closes all connections and forgets scripts and data. The
// next request succeeds all the same.
func TestR12Restart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, store := range map[string]dedupe.Store{
		"stock": redisstore.New(server.Client()), "opened": open(t, server.URL()),
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(nil, newOnce(t, store), newSerialize(t, store))
			for _, key := range []string{"a", "b", "c"} {
				s.replay(t, key, s.run(t, key))
				server.Restart()
			}
		})
	}
}

// TestR12Replica has the client talk to a replica.
func TestR12Replica(t *testing.T) {
	t.Parallel()
	replica := redistest.Start(t, redistest.ReplicaOf(redistest.Start(t)))
	store := redisstore.New(replica.Client())
	o := newOwner(store)
	_, err := o.claim(t.Context(), long)
	match(t, err, dedupe.ErrStoreUnavailable)
	if !strings.Contains(err.Error(), "point it at the primary") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	for name, operation := range operations {
		if err := operation(t.Context(), o); name == "claim" {
			match(t, err, dedupe.ErrStoreUnavailable)
		} else if err == nil && name != "release" { // of what is not there, which needs no writing
			t.Errorf("%s succeeded on a replica", name)
		}
	}
	newService(nil, newOnce(t, store)).refuse(t, "key", http.StatusServiceUnavailable, "store-unavailable")
}

// TestR12Full fills Redis while handlers run. New requests are refused; what is held is let go of, and
// what has run is kept.
func TestR12Full(t *testing.T) {
	t.Parallel()
	r := newRig(t, redistest.Config("--maxmemory-policy", "noeviction"))
	once, account := newHeld(t, r, onceGuard), newHeld(t, r, serializeGuard)
	tombstone := newOwner(r.store)
	tombstone.grant(t, long)

	r.server.Config(t, "maxmemory", "1")
	if err := r.direct.Set(t.Context(), "more", "x", 0).Err(); !redis.HasErrorPrefix(err, "OOM") {
		t.Fatalf("Redis is not full: %v", err)
	}
	_, err := newOwner(r.store).claim(t.Context(), long)
	match(t, err, dedupe.ErrStoreUnavailable)
	if !strings.Contains(err.Error(), "raise maxmemory") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	for _, held := range []*held{once, account} {
		held.others.refuse(t, "new", http.StatusServiceUnavailable, "store-unavailable")
	}
	succeed(t, tombstone.extend(t.Context(), long))
	succeed(t, tombstone.complete(t.Context(), nil, time.Hour))
	first := once.finish(t)
	account.finish(t)
	once.others.replay(t, "held", first)
	claimed, err := tombstone.rival().claim(t.Context(), long)
	if err != nil || claimed.Status != dedupe.StatusCompleted || claimed.Answer != nil {
		t.Errorf("the tombstone reads as %v %q (%v)", claimed.Status, claimed.Answer, err)
	}
	if r.proxy.Count(completes) != 2 || r.proxy.Count(releases) == 0 {
		t.Errorf("it took %d calls to complete", r.proxy.Count(completes))
	}

	r.server.Config(t, "maxmemory", "0")
	account.others.run(t, "held")
	once.others.run(t, "new")
	once.others.replay(t, "held", first)
}

// TestR12NoPermission takes a user's permissions away one by one.
func TestR12NoPermission(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, command := range []string{"evalsha", "eval", "time", "exists", "hmget", "hset", "pexpire", "del"} {
		t.Run(command, func(t *testing.T) {
			succeed(t, r.direct.ScriptFlush(t.Context()).Err())
			store := redisstore.New(userWithout(t, r, command))
			failed := 0
			for _, operation := range operations {
				o := newOwner(store)
				o.over(r.beside()).grant(t, long)
				if err := operation(t.Context(), o); err != nil {
					match(t, err, dedupe.ErrStoreUnavailable)
					failed++
					if !strings.Contains(err.Error(), "allow the Redis user") && !strings.Contains(err.Error(), "NOSCRIPT") {
						t.Errorf("the error does not say what to do: %v", err)
					}
				}
			}
			if failed == 0 && command != "eval" {
				t.Errorf("nothing needs +%s", command)
			}
		})
	}
	t.Run("what the error names", func(t *testing.T) {
		_, err := newOwner(redisstore.New(userWithout(t, r, "evalsha"))).claim(t.Context(), long)
		_, named, _ := strings.Cut(err.Error(), "allow the Redis user ")
		named, _, _ = strings.Cut(named, " on the store's prefix")
		rules := []any{"ACL", "SETUSER", "named", "on", ">secret", "resetkeys", "~interlock:*", "-@all", "+hello", "+client"}
		for rule := range strings.FieldsSeq(named) {
			rules = append(rules, rule)
		}
		succeed(t, r.direct.Do(t.Context(), rules...).Err())
		client := redis.NewClient(&redis.Options{Addr: r.server.Addr(), Username: "named", Password: "secret"})
		t.Cleanup(func() { _ = client.Close() })
		store := redisstore.New(client)
		once, account := newService(nil, newOnce(t, store)), newService(nil, newSerialize(t, store))
		once.replay(t, "permitted", once.run(t, "permitted"))
		account.run(t, "permitted")
		o := newOwner(store)
		o.grant(t, long)
		succeed(t, o.extend(t.Context(), long))
	})
}

// TestR12ClusterDown stops a node, and with it the cluster.
func TestR12ClusterDown(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	store := redisstore.New(cluster.Client())
	o := newOwner(store)
	o.grant(t, long)
	owner := cluster.Owner(cluster.Slot(o.key()))
	other := cluster.Nodes()[0]
	if other == owner {
		other = cluster.Nodes()[1]
	}
	ask := func() error {
		start := time.Now()
		_, err := o.rival().claim(t.Context(), long)
		if took := time.Since(start); took > budget+slack {
			t.Errorf("an answer took %v", took)
		}
		return err
	}
	other.Kill()
	redistest.Eventually(t, patience, func() bool { return ask() != nil }, "the cluster goes on")
	match(t, ask(), dedupe.ErrStoreUnavailable)
	other.Restart()
	redistest.Eventually(t, patience, func() bool { return ask() == nil }, "the cluster does not recover")
}

// TestR12Failover kills the master behind Sentinel under requests: they are refused for as long as
// there is no other, and then they run.
func TestR12Failover(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	services := map[string]*service{}
	for name, store := range map[string]dedupe.Store{
		"stock":  redisstore.New(sentinel.Client()),
		"opened": open(t, "redis+sentinel://"+sentinel.Addrs()[0]+"?master_name="+sentinel.MasterName()),
	} {
		services[name] = newService(nil, newOnce(t, store), newSerialize(t, store))
		services[name].run(t, name)
	}
	master := sentinel.Master()
	master.Kill()
	start := time.Now()
	for name, s := range services {
		s.refuse(t, "too-early-"+name, http.StatusServiceUnavailable, "store-unavailable")
	}
	sentinel.AwaitPromotion(t, master)
	promoted := time.Now()
	for name, s := range services {
		s.repeat(t, "afterwards-"+name)
		t.Logf("%s: requests run again %v after the promotion, %v after the crash", name,
			time.Since(promoted).Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	}
}
