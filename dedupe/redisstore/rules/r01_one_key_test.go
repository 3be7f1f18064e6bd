package rules

import (
	"bufio"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// TestR1RequestsNameOneKey looks at what is sent.
func TestR1RequestsNameOneKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keys := everyPath(t, r)
	r.direct.ScriptFlush(t.Context())
	keys = append(keys, everyPath(t, r)...)

	sent := map[string]int{}
	for _, args := range r.proxy.Requests() {
		command := strings.ToLower(args[0])
		if command != "evalsha" && command != "eval" {
			continue
		}
		sent[command]++
		if args[2] != "1" {
			t.Errorf("%s is sent with %s keys", command, args[2])
		}
		if !strings.HasPrefix(args[3], "interlock:{") || !strings.HasSuffix(args[3], "}") {
			t.Errorf("the key is %q: not all of what tells keys apart decides the slot", args[3])
		}
	}
	if sent["evalsha"] < len(keys) || sent["eval"] == 0 {
		t.Fatalf("the proxy saw %v", sent)
	}
}

// TestR1ScriptsTouchTheirKeyOnly looks at what the scripts do, in the server's own account: a script
// could build a key's name itself.
func TestR1ScriptsTouchTheirKeyOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	watch, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.server.Addr())
	succeed(t, err)
	t.Cleanup(func() { _ = watch.Close() })
	succeed(t, watch.SetDeadline(time.Now().Add(patience)))
	_, err = watch.Write([]byte("MONITOR\r\n"))
	succeed(t, err)
	lines := bufio.NewScanner(watch)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR: %q, %v", lines.Text(), lines.Err())
	}

	keys := everyPath(t, r)
	succeed(t, r.direct.Echo(t.Context(), "the end").Err())

	var key string // of the script that runs
	seen := 0
	for lines.Scan() && !strings.Contains(lines.Text(), "the end") {
		if sent := sentScript.FindStringSubmatch(lines.Text()); sent != nil {
			key = sent[1]
		}
		_, call, fromScript := strings.Cut(lines.Text(), "lua] ")
		if !fromScript || call == `"TIME"` {
			continue
		}
		seen++
		if words := strings.Fields(call); words[1] != key || strings.Count(call, "interlock:") != 1 {
			t.Errorf("the script of %s called %s", key, call)
		}
	}
	if seen < 2*len(keys) {
		t.Fatalf("MONITOR showed %d calls by scripts: %v", seen, lines.Err())
	}
}

// sentScript finds the key in MONITOR's account of a script that a client runs.
var sentScript = regexp.MustCompile(`(?i)"eval(?:sha)?" ".*?" "1" (".*?")`)

// everyPath takes a key along each path that scripts have, and returns the keys.
func everyPath(t *testing.T, r *rig) (keys []string) {
	t.Helper()
	ctx := t.Context()
	for _, end := range []func(owner) error{
		func(o owner) error { return o.complete(ctx, []byte("answer"), time.Hour) },
		func(o owner) error { return o.complete(ctx, nil, time.Hour) },
		func(o owner) error { return o.release(ctx) },
		func(owner) error { return nil },
	} {
		o := newOwner(r.store)
		keys = append(keys, o.key())
		_, err := r.store.Claim(ctx, dedupe.Claim{
			Holder: o.holder, Fingerprint: dedupe.Fingerprint{1}, Lease: long, Lapse: long,
		})
		succeed(t, err)
		succeed(t, o.extend(ctx, long))
		_, err = o.rival().claim(ctx, long)
		succeed(t, err)
		succeed(t, end(o))
		_, err = o.rival().claim(ctx, long)
		succeed(t, err)
		match(t, newOwner(r.store).extend(ctx, long), dedupe.ErrLeaseLost)
	}
	return keys
}

// TestR1SlotMigrates has every operation done before, during and after the migration of the key's
// slot. A script with two keys would be told TRYAGAIN for as long as one of them had moved.
func TestR1SlotMigrates(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	client := cluster.Client()
	store := redisstore.New(client, redisstore.WithBudget(5*time.Second))

	for name, operation := range operations {
		t.Run(name, func(t *testing.T) {
			o := newOwner(store)
			slot := cluster.Slot(o.key())
			from, to := cluster.Nodes()[0], cluster.Nodes()[1]
			if cluster.Owner(slot) == to {
				from, to = to, from
			}
			try := func(when string) {
				t.Helper()
				if err := operation(t.Context(), o); err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				succeed(t, client.Del(t.Context(), o.key()).Err())
				o.grant(t, long)
			}

			o.grant(t, long)
			try("before the migration")
			cluster.BeginMigration(t, slot, from, to)
			try("with the key at its old node")
			cluster.MoveKeys(t, slot, from, to)
			try("with the key at its new node")
			cluster.FinishMigration(t, slot, from, to)
			try("after the migration")
			if cluster.Owner(slot) != to {
				t.Fatal("the slot has not moved")
			}
		})
	}
}
