package waiting

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// The store's scripts as a proxy sees them.
var (
	claims   = redistest.Script(scriptDigest("claim"))
	releases = redistest.Script(scriptDigest("release"))
)

func scriptDigest(name string) string {
	read := func(name string) string {
		source, err := os.ReadFile(filepath.Join("..", "script", name+".lua"))
		must(err)
		return string(source)
	}
	sum := sha1.Sum([]byte(strings.Replace(read(name), "--[[ line.lua ]]\n", read("line"), 1)))
	return hex.EncodeToString(sum[:])
}

// claimant makes claims by the methods of a store, and notes what it is told.
type claimant struct {
	store  *redisstore.Store
	holder dedupe.Holder

	mu       sync.Mutex
	told     []dedupe.Grant
	unwanted bool
}

func newToken() (t dedupe.Token) {
	_, _ = rand.Read(t[:])
	return t
}

func newDigest() (d dedupe.Digest) {
	_, _ = rand.Read(d[:])
	return d
}

// Wake implements [dedupe.Waiter].
func (c *claimant) Wake(_ dedupe.Holder, g dedupe.Grant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.unwanted {
		c.told = append(c.told, g)
	}
	return !c.unwanted
}

// grants returns the fences that it was told of.
func (c *claimant) grants() (fences []uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.told {
		if g.Fence > 0 {
			fences = append(fences, g.Fence)
		}
	}
	return fences
}

func (c *claimant) claim(t *testing.T, yields dedupe.Token) dedupe.Claimed {
	t.Helper()
	claimed, err := c.store.Claim(t.Context(), dedupe.Claim{Holder: c.holder, Lease: long, Waiter: c, Yields: yields})
	succeed(t, err)
	return claimed
}

// want claims the key, which has to come out as expected.
func (c *claimant) want(t *testing.T, status dedupe.Status, queued bool) dedupe.Claimed {
	t.Helper()
	claimed := c.claim(t, dedupe.Token{})
	if claimed.Status != status || claimed.Queued != queued {
		t.Fatalf("the claim found %+v, want %v, queued %v", claimed, status, queued)
	}
	return claimed
}

// queue claims the key until it has a place in its line.
func (c *claimant) queue(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, patience, func() bool { return c.claim(t, dedupe.Token{}).Queued }, "no place in the line")
}

func (c *claimant) release(t *testing.T) error {
	t.Helper()
	return c.store.Release(t.Context(), c.holder)
}

// crowd returns claimants of one key, each with a store of its own, of which the first has the key and the
// others stand in its line.
func crowd(t *testing.T, s site, n int) (watch, []*claimant) {
	t.Helper()
	w := s.watch(t)
	digest := newDigest()
	claimants := make([]*claimant, n)
	for i := range claimants {
		store := s.store(nil)
		t.Cleanup(func() { _ = store.Close() })
		claimants[i] = &claimant{store: store, holder: dedupe.Holder{Digest: digest, Token: newToken()}}
		if i == 0 {
			claimants[i].want(t, dedupe.StatusGranted, false)
		} else {
			claimants[i].queue(t)
		}
	}
	w.checkTTL(t)
	return w, claimants
}

// checkTTL checks that the record outlives its lease, and not for long.
func (w watch) checkTTL(t *testing.T) {
	t.Helper()
	r := w.record(t)
	if len(r.fields) == 0 {
		return
	}
	if r.ttl <= 0 || r.ttl > long+6*time.Second {
		t.Errorf("the record has a TTL of %v: %q", r.ttl, r.fields)
	}
}

func (c *claimant) token() string { return string(c.holder.Token[:]) }

// wantState checks the owner and the line.
func (w watch) wantState(t *testing.T, owner *claimant, line ...*claimant) {
	t.Helper()
	r := w.record(t)
	tokens := make([]string, len(line))
	for i, c := range line {
		tokens[i] = c.token()
	}
	if r.owner() != owner.token() || !slices.Equal(r.line(), tokens) {
		t.Fatalf("owner %x and line %x, want %x and %x", r.owner(), r.line(), owner.token(), tokens)
	}
	w.checkTTL(t)
}

// TestYieldTwice loses the reply to a claim that yields, so that the client sends it again.
func TestYieldTwice(t *testing.T) {
	t.Parallel()
	proxy, behind, _ := newWire(t)
	w, c := crowd(t, behind, 3)
	for _, fault := range []redistest.Fault{redistest.CutAfterRequest, redistest.CutBeforeRequest} {
		rule := proxy.On(claims, 1, fault)
		before := proxy.Count(claims)
		next := &claimant{store: c[0].store, holder: dedupe.Holder{Digest: c[0].holder.Digest, Token: newToken()}}
		claimed := next.claim(t, c[0].holder.Token)
		if claimed.Status != dedupe.StatusHeld || rule.Fired() != 1 || proxy.Count(claims) == before {
			t.Fatalf("the claim found %+v, the fault occurred %d times", claimed, rule.Fired())
		}
		owner := w.record(t).owner()
		if owner != c[1].token() {
			t.Fatalf("the owner is %x, want the first in the line", owner)
		}
		w.checkTTL(t)
		redistest.Eventually(t, patience, func() bool { return len(c[1].grants()) > 0 }, "the owner was not told")
		if n := len(c[1].grants()); n != 1 {
			t.Errorf("the owner was told %d times", n)
		}
		next.queue(t)
		c = append(c[1:], next)
		w.wantState(t, c[0], c[1:]...)
		proxy.Remove(rule)
	}
}

// TestReleaseTwice loses the reply to a release with a line, and releases again when the grant went on.
func TestReleaseTwice(t *testing.T) {
	t.Parallel()
	proxy, behind, _ := newWire(t)
	w, c := crowd(t, behind, 4)
	rule := proxy.On(releases, 1, redistest.CutAfterRequest)
	if err := c[0].release(t); err != nil && !errors.Is(err, dedupe.ErrLeaseLost) {
		t.Fatal(err)
	}
	if rule.Fired() != 1 {
		t.Fatal("no reply was lost")
	}
	w.wantState(t, c[1], c[2], c[3])
	if err := c[0].release(t); !errors.Is(err, dedupe.ErrLeaseLost) {
		t.Errorf("a release of who had the key before: %v", err)
	}
	w.wantState(t, c[1], c[2], c[3])
	redistest.Eventually(t, patience, func() bool { return len(c[1].grants()) == 1 }, "the owner was not told")

	// One that stands in the line is taken out, and nothing else happens.
	succeed(t, c[2].release(t))
	w.wantState(t, c[1], c[3])
	if err := c[2].release(t); !errors.Is(err, dedupe.ErrLeaseLost) {
		t.Errorf("a release of who stood in the line before: %v", err)
	}
	w.wantState(t, c[1], c[3])
	c[1].want(t, dedupe.StatusGranted, false) // now with its whole lease
	w.wantState(t, c[1], c[3])
	succeed(t, c[3].release(t))
	w.wantState(t, c[1])
	succeed(t, c[1].release(t))
	w.awaitFree(t)
}

// TestUnwantedGrant grants the key to one that does not want it any more: it goes on to the next.
func TestUnwantedGrant(t *testing.T) {
	t.Parallel()
	w, c := crowd(t, siteOf(redistest.Start(t)), 3)
	c[1].unwanted = true
	succeed(t, c[0].release(t))
	redistest.Eventually(t, patience, func() bool { return len(c[2].grants()) == 1 }, "the key was not passed on")
	w.wantState(t, c[2])
}

// TestLateWord has the word about a grant come after the claim that found it, and after its lease was
// given a new length: it must not end what it is about.
func TestLateWord(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := siteOf(server)
	w, c := crowd(t, s, 2)
	fields := w.record(t)
	channel := w.channels(t)[0]
	succeed(t, c[0].release(t))
	redistest.Eventually(t, patience, func() bool { return len(c[1].grants()) == 1 }, "the owner was not told")
	c[1].want(t, dedupe.StatusGranted, false)
	word := c[1].token() + "granted " + w.record(t).fields["f"] + " " + fields.key
	for range 2 {
		succeed(t, w.client.Publish(t.Context(), channel, word).Err())
	}
	redistest.Eventually(t, patience, func() bool { return len(c[1].grants()) == 3 }, "the owner was not told again")
	w.wantState(t, c[1])
	succeed(t, c[1].store.Extend(t.Context(), c[1].holder, long))
	for _, g := range c[1].told {
		if since := time.Since(g.Since); since < 0 {
			t.Errorf("a grant is told to have been made in %v", -since)
		}
	}
}

// TestAgeOfGrant has the word about a grant come over a subscription of which nothing else is known: a
// claim that was answered in between says nothing about its age, for it may be from before that.
func TestAgeOfGrant(t *testing.T) {
	t.Parallel()
	w, c := crowd(t, siteOf(redistest.Start(t)), 1)
	var unsure ear
	unsure.lose(func(message string) bool { return !strings.HasPrefix(message, ">") }) // answers to PING
	late := &claimant{store: w.store(&unsure), holder: dedupe.Holder{Digest: c[0].holder.Digest, Token: newToken()}}
	t.Cleanup(func() { _ = late.store.Close() })
	late.queue(t)
	began := time.Now()
	late.want(t, dedupe.StatusHeld, true)
	word := late.token() + "granted 1 " + w.record(t).key
	redistest.Eventually(t, patience, func() bool {
		for _, channel := range w.channels(t) {
			succeed(t, w.client.Publish(t.Context(), channel, word).Err())
		}
		return len(late.grants()) > 0
	}, "the claim was not told")
	late.mu.Lock()
	defer late.mu.Unlock()
	for _, g := range late.told {
		if g.Fence > 0 && g.Since.After(began) {
			t.Error("the grant is taken for new, which is not known")
		}
	}
}

// TestNobodyHearing has a claim with a place in the line ask again while its process hears nothing, at a
// moment when the key is free: it takes away nobody's place.
func TestNobodyHearing(t *testing.T) {
	t.Parallel()
	w, c := crowd(t, siteOf(redistest.Start(t)), 4)
	succeed(t, w.client.HSet(t.Context(), w.record(t).key, "e", 0).Err()) // the lease is over
	claimed, err := c[2].store.Claim(t.Context(), dedupe.Claim{Holder: c[2].holder, Lease: long})
	succeed(t, err)
	if claimed.Status != dedupe.StatusHeld || claimed.Queued {
		t.Errorf("the claim found %+v", claimed)
	}
	w.wantState(t, c[1], c[2], c[3])

	// One that does not wait has no place afterwards.
	succeed(t, w.client.HSet(t.Context(), w.record(t).key, "e", 0).Err())
	other := dedupe.Holder{Digest: c[0].holder.Digest, Token: newToken()}
	if claimed, err = c[0].store.Claim(t.Context(), dedupe.Claim{Holder: other, Lease: long}); claimed.Status != dedupe.StatusHeld {
		t.Errorf("the claim found %+v, %v", claimed, err)
	}
	w.wantState(t, c[2], c[3])
}

// TestLongLine passes a key over thousands of dead processes, within the budget of a call.
func TestLongLine(t *testing.T) {
	t.Parallel()
	w, c := crowd(t, siteOf(redistest.Start(t)), 3)
	key := w.record(t).key
	dead := strings.Repeat(strings.Repeat("x", 16)+"p"+strings.Repeat("y", 16), 4093)
	line := w.record(t).fields["q"]
	succeed(t, w.client.HSet(t.Context(), key, "q", line[:placeSize]+dead+line[placeSize:]).Err())
	c[2].want(t, dedupe.StatusHeld, true)
	if n := len(w.record(t).line()); n != 4095 {
		t.Fatalf("the line has %d places", n)
	}
	succeed(t, c[0].release(t))
	began := time.Now()
	succeed(t, c[1].release(t))
	if took := time.Since(began); took > time.Second {
		t.Errorf("passing over 4093 dead processes took %v", took)
	} else {
		t.Logf("passing over 4093 dead processes took %v", took)
	}
	w.wantState(t, c[2])

	succeed(t, w.client.HSet(t.Context(), key, "q", dead+dead).Err())
	full := &claimant{store: c[0].store, holder: dedupe.Holder{Digest: c[0].holder.Digest, Token: newToken()}}
	full.want(t, dedupe.StatusHeld, false) // there is no room
	began = time.Now()
	succeed(t, c[2].store.Complete(t.Context(), c[2].holder, []byte("answer"), long))
	t.Logf("completing with 8186 dead processes in the line took %v", time.Since(began))
}

// TestDamagedLine has a record with something else for its line. It costs those in it their places; the key
// has one owner all the same, and is free again when that one is done.
func TestDamagedLine(t *testing.T) {
	t.Parallel()
	for name, damaged := range map[string]string{
		"short": "x", "half a place": strings.Repeat("x", 50), "binary": string(make([]byte, 100)), "newer": "2:" + strings.Repeat("z", 33),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c := crowd(t, siteOf(redistest.Start(t)), 2)
			key := w.record(t).key
			damage := func() { succeed(t, w.client.HSet(t.Context(), key, "q", damaged).Err()) }
			damage()
			c[1].claim(t, dedupe.Token{})
			succeed(t, c[0].store.Extend(t.Context(), c[0].holder, long))
			c[0].want(t, dedupe.StatusGranted, false)
			w.checkTTL(t)
			damage()
			succeed(t, w.client.HSet(t.Context(), key, "e", 0).Err())
			redistest.Eventually(t, patience, func() bool {
				return c[1].claim(t, dedupe.Token{}).Status == dedupe.StatusGranted
			}, "nobody gets the key")
			w.checkTTL(t)
			damage()
			succeed(t, c[1].release(t))
			w.awaitFree(t)
		})
	}
}
