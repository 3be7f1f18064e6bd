package dedupe

import (
	"math/rand/v2"
	"time"
)

// patience is what is left of one request's willingness to wait, over all its keys.
type patience struct {
	wait  time.Duration
	until time.Time     // set when it first waits
	pause time.Duration // before the next question, where the store keeps no line
}

// begin starts the time, which runs from when a key was found held.
func (p *patience) begin() {
	if p.until.IsZero() {
		p.until = time.Now().Add(p.wait)
	}
}

// waited reports whether it has begun.
func (p *patience) waited() bool { return !p.until.IsZero() }

// obtain gets a key for the lease, and waits for it as long as p allows. With StatusGranted the lease
// has it.
func (l *Lease) obtain(c *claimant, claim Claim, p *patience) (Claimed, error) {
	c.fingerprint, c.patient = claim.Fingerprint, p.wait > 0
	c.lease, c.lapse = claim.Lease, claim.Lapse
	c.token = newToken()
	claim.Token = c.token
	now := c.enter(l.guard.store, l.guard.maxWaiters)
	for alone := now == contending; ; alone = false {
		switch now {
		case contending:
			if !alone { // otherwise the gate is new, and has c's token
				claim.Token, claim.Yields = c.gate.request()
			}
			now = l.contend(c, claim, p)
		case inLine, queued:
			now = l.linger(c, p)
		case granted:
			return Claimed{Status: StatusGranted}, nil
		case decided:
			return c.decision.found, c.decision.err
		}
	}
}

// contend asks the store for the key.
func (l *Lease) contend(c *claimant, claim Claim, p *patience) standing {
	gate := c.gate
	if c.patient {
		claim.Waiter = gate
	}
	sent := time.Now()
	claimed, err := l.ask(c, claim)

	gate.hall.mu.Lock()
	defer gate.hall.mu.Unlock()
	switch {
	case err != nil:
		l.guard.abandon(l.ctx, claim.Holder)
		if claim.Yields != (Token{}) { // its holder is done, and relies on this claim
			go l.guard.takeBack(l.ctx, Holder{claim.Digest, claim.Yields}, claim.Lease)
		}
		if l.ctx.Err() == nil { // otherwise it says nothing about the store
			gate.share(claimed, err)
		}
	case claimed.Status == StatusGranted:
		gate.hold(claimed.Fence, sent, l.guard.deadlineOf(sent, claim.Lease))
		return granted
	case claimed.Status == StatusHeld && c.patient:
		p.begin()
		gate.wait(claimed, p)
		return queued
	default:
		gate.share(claimed, nil)
	}
	gate.token, gate.yields, gate.grant = Token{}, Token{}, Grant{}
	gate.advance()
	c.refuse(claimed, err)
	return decided
}

// ask carries out a claim.
func (l *Lease) ask(c *claimant, claim Claim) (Claimed, error) {
	returned := false
	defer func() {
		if !returned { // the store panicked, and whoever is next asks for itself
			c.depart(Claimed{})
		}
	}()
	claimed, err := l.guard.store.Claim(l.ctx, claim)
	returned = true
	return claimed, err
}

// linger waits in line, or at its front for the store's word, until there is something to do.
func (l *Lease) linger(c *claimant, p *patience) standing {
	if c.patient {
		p.begin()
	}
	var timer *time.Timer
	var ring <-chan time.Time
	for {
		now, until := l.look(c, p)
		if now != inLine && now != queued {
			return now
		}
		switch {
		case until.IsZero():
		case timer == nil:
			timer = time.NewTimer(time.Until(until))
			defer timer.Stop()
			ring = timer.C
		default:
			timer.Reset(time.Until(until))
		}
		select {
		case <-c.wake:
		case <-ring:
		case <-l.ctx.Done():
		}
	}
}

// look sees how far a claimant is that waits, and gives up if its time is over. It returns when to
// look again at the latest.
func (l *Lease) look(c *claimant, p *patience) (standing, time.Time) {
	hall := hallOf(c.digest)
	hall.mu.Lock()
	defer hall.mu.Unlock()
	if c.standing != inLine && c.standing != queued {
		return c.standing, time.Time{}
	}
	g, now := c.gate, time.Now()
	if c.standing == queued {
		switch grant := g.grant; {
		case grant.Fence != 0:
			g.grant = Grant{}
			margin := min(l.guard.margin(), grant.Lease/20)
			deadline := grant.Since.Add(grant.Lease - margin)
			if deadline.Sub(now) < grant.Lease/4 { // the word may have come late: ask
				return contending, time.Time{}
			}
			g.hold(grant.Fence, now, deadline)
			return granted, time.Time{}
		case l.ctx.Err() == nil && now.Before(p.until) && !now.Before(g.again):
			return contending, time.Time{}
		}
	}
	if l.ctx.Err() != nil || c.patient && !now.Before(p.until) {
		found := g.conflict()
		if left := g.leave(c); left != (Token{}) {
			l.guard.abandon(l.ctx, Holder{c.digest, left})
		}
		c.refuse(found, nil)
		return decided, time.Time{}
	}
	until := p.until
	if c.standing == queued && g.again.Before(until) {
		until = g.again
	}
	return c.standing, until
}

// wait notes that the front is to wait for the store's word, or to ask again after a while.
func (g *gate) wait(found Claimed, p *patience) {
	after := max(firstPause, found.Remaining)
	if !found.Queued {
		p.pause = min(max(firstPause, p.pause*8/5), longestPause)
		after = jitter(p.pause)
	}
	g.phase, g.yields = waiting, Token{}
	g.askAt(time.Now().Add(after))
	g.front.standing = queued
	if g.front.wake == nil {
		g.front.wake = make(chan struct{}, 1)
	}
	g.settleLine()
}

// Where the store keeps no line, asking starts at the length of a quick handler and backs off to ten
// times a second. Nobody asks sooner.
const (
	firstPause   = 4 * time.Millisecond
	longestPause = 100 * time.Millisecond
)

// jitter spreads d over half to one and a half of it, so that waiters do not ask in step.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d) //nolint:gosec // it spreads load, it keeps no secret
}
