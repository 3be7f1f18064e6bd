package dedupe

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// patience is what is left of one request's willingness to wait, over all its keys.
type patience struct {
	wait  time.Duration
	until time.Time // set at the first conflict
}

// claim claims one key and, if it is held, waits for it as long as patience and ctx allow. It
// returns when the claim that gave the result was sent. This is where a waiting line replaces
// polling: callers see only that it takes time.
func (g *Guard) claim(ctx context.Context, c Claim, p *patience) (sent time.Time, claimed Claimed, err error) {
	ask := func() bool {
		sent = time.Now()
		claimed, err = g.store.Claim(ctx, c)
		return err == nil && claimed.Status == StatusHeld
	}
	if !ask() || p.wait == 0 {
		return sent, claimed, err
	}
	if p.until.IsZero() {
		p.until = sent.Add(p.wait)
	}
	if !g.waiters.enter(c.Digest, g.maxWaiters) {
		return sent, claimed, err
	}
	defer g.waiters.leave(c.Digest)
	for pause := firstPause; ; pause = min(pause*8/5, longestPause) {
		rest := time.Until(p.until)
		if rest <= 0 || !sleep(ctx, min(jitter(pause), rest)) || !ask() {
			return sent, claimed, err
		}
	}
}

// Polling starts at the length of a quick handler and backs off to ten times a second.
const (
	firstPause   = 4 * time.Millisecond
	longestPause = 100 * time.Millisecond
)

// jitter spreads d over half to one and a half of it, so that waiters do not ask in step.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d) //nolint:gosec // it spreads load, it keeps no secret
}

// waiters counts the requests of this process that wait for each key.
type waiters struct {
	mu      sync.Mutex
	waiting map[Digest]int
}

// enter reports whether there is room for one more.
func (w *waiters) enter(d Digest, limit int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting[d] >= limit {
		return false
	}
	if w.waiting == nil {
		w.waiting = make(map[Digest]int)
	}
	w.waiting[d]++
	return true
}

func (w *waiters) leave(d Digest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting[d]--; w.waiting[d] == 0 {
		delete(w.waiting, d)
	}
}
