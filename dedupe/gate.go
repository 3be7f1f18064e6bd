package dedupe

import (
	"sync"
	"time"
)

// gate is where the requests of this process meet that want one key of one store. The claimant at its
// front talks to the store about the key, or has it. The others line up behind it, first come first
// served, and cost the store nothing: they get the key from the one before them, or share what it
// was told. All fields are guarded by the hall.
type gate struct {
	hall   *hall
	at     address
	front  *claimant
	line   line
	phase  phase
	token  Token // by which the front asks, or has the key; zero before it asks
	yields Token // of an earlier owner whose lease the next claim is to end; zero if there is none

	// fingerprint is the one that the front came with. While the key is held, here or elsewhere, the
	// store has the same.
	fingerprint Fingerprint

	// While the front waits for the store's word.
	again time.Time // when to ask again
	grant Grant     // the word, once it came

	// While one of this process has the key.
	since    time.Time // when the front got it
	received time.Time // when the store's grant came, if it may be handed on
	handed   int       // how often it was handed on since then
	handoffs int       // how often it may still be
}

// phase is what is known about the key.
type phase uint8

const (
	// asking: nothing. The front's claim is on its way to the store, or its answer, or its release.
	asking phase = iota
	// waiting: another process has the key, and the front waits for it.
	waiting
	// holding: the front has the key.
	holding
)

// address is which key of which store.
type address struct {
	store  Store
	digest Digest
}

// hall is a part of the gates of this process. A gate is there only while somebody is at it.
type hall struct {
	mu    sync.Mutex
	gates map[address]*gate
	spare *gate // one that was closed, for the next
}

// halls are all gates. All guards of a process share them: guards of one lock domain may be built
// in several places.
var halls [64]hall

func hallOf(d Digest) *hall { return &halls[int(d[1])%len(halls)] }

// enter takes a claimant to the gate of its key, where at most limit others may wait.
func (c *claimant) enter(store Store, limit int) standing {
	h := hallOf(c.digest)
	h.mu.Lock()
	defer h.mu.Unlock()
	at := address{store, c.digest}
	g := h.gates[at]
	if g == nil {
		g = h.open(at)
		c.gate, c.standing = g, contending
		g.front, g.fingerprint, g.token = c, c.fingerprint, c.token
		return c.standing
	}
	switch {
	case g.phase != asking && !g.same(c):
		c.refuse(Claimed{Status: StatusMismatch}, nil)
	case g.phase != asking && !c.patient, c.patient && g.waiting() >= limit:
		c.refuse(g.conflict(), nil)
	default:
		if c.wake == nil {
			c.wake = make(chan struct{}, 1)
		}
		c.gate, c.standing = g, inLine
		g.line.push(c)
	}
	return c.standing
}

// open makes a gate.
func (h *hall) open(at address) *gate {
	g := h.spare
	h.spare = nil
	if g == nil {
		g = new(gate)
	}
	*g = gate{hall: h, at: at}
	if h.gates == nil {
		h.gates = make(map[address]*gate)
	}
	h.gates[at] = g
	return g
}

// close takes away a gate that nobody is at.
func (g *gate) close() {
	delete(g.hall.gates, g.at)
	g.token = Token{} // it is nobody's any more
	g.hall.spare = g
}

// waiting is how many wait here.
func (g *gate) waiting() int {
	n := g.line.patient
	if g.phase == waiting {
		n++
	}
	return n
}

// same reports whether c's request may be the one that the front came with.
func (g *gate) same(c *claimant) bool {
	none := Fingerprint{}
	return g.fingerprint == c.fingerprint || g.fingerprint == none || c.fingerprint == none
}

// conflict is what those find that do not wait.
func (g *gate) conflict() Claimed {
	found := Claimed{Status: StatusHeld}
	switch g.phase {
	case holding:
		if found.Remaining = time.Until(g.front.deadline); found.Remaining <= 0 {
			found.Remaining = g.front.lease // it was renewed
		}
		// What the line will take, if the others take as long as the front has taken until now.
		found.Backlog = time.Since(g.since) * time.Duration(g.line.length)
	case waiting:
		found.Remaining = max(0, time.Until(g.again))
	case asking:
	}
	return found
}

// Wake implements [Waiter].
func (g *gate) Wake(h Holder, grant Grant) bool {
	hall := hallOf(h.Digest) // which is locked before anything of the gate is looked at:
	hall.mu.Lock()
	defer hall.mu.Unlock()
	if g.token != h.Token { // it may be another key's by now
		return false
	}
	switch {
	case g.phase == holding: // the store said so before, in answer to a claim
	case grant.Fence == 0:
		g.askAt(time.Now().Add(grant.Lease))
		g.front.notify()
	default:
		g.grant = grant
		g.front.notify()
	}
	return true
}

// request returns the tokens for the front's next claim.
func (g *gate) request() (token, yields Token) {
	token = newToken()
	g.hall.mu.Lock()
	defer g.hall.mu.Unlock()
	if g.token == (Token{}) {
		g.token = token
	}
	g.phase, g.again = asking, time.Time{}
	return g.token, g.yields
}

// askAt has the front ask again at t, unless it is to ask sooner. A word to that effect may come before
// the answer to the claim that it is about.
func (g *gate) askAt(t time.Time) {
	if g.again.IsZero() || t.Before(g.again) {
		g.again = t
	}
}

// hold notes that the front has the key, by a grant that was not made before began.
func (g *gate) hold(fence uint64, began, deadline time.Time) {
	g.phase, g.yields, g.grant = holding, Token{}, Grant{}
	g.since, g.handed = began, 0
	g.front.token, g.front.fence = g.token, fence
	g.front.began, g.front.deadline = began, deadline
	g.front.standing = granted
	g.settleLine()
	// Those who came before the grant get their turn in it, and no others: then other processes'.
	if g.handoffs = min(g.line.length, FencesPerGrant-1); g.handoffs > 0 {
		g.received = time.Now()
	}
}

// settleLine sends away those who only wanted to know whether the key is held, now that it is.
func (g *gate) settleLine() {
	if g.line.first == nil {
		return
	}
	g.line.filter(func(c *claimant) bool {
		switch {
		case !g.same(c):
			c.refuse(Claimed{Status: StatusMismatch}, nil)
		case !c.patient:
			c.refuse(g.conflict(), nil)
		default:
			return true
		}
		return false
	})
}

// share gives those in line what the front was told, as far as it is true of them too.
func (g *gate) share(claimed Claimed, err error) {
	g.line.filter(func(c *claimant) bool {
		if err == nil && c.fingerprint != g.fingerprint || err == nil && claimed.Status == StatusHeld && c.patient {
			return true
		}
		c.refuse(claimed, err)
		return false
	})
}

// advance puts the next in line to the front, to ask the store, or closes the gate.
func (g *gate) advance() {
	g.front = g.line.pop()
	if g.front == nil {
		g.close()
		return
	}
	g.phase, g.fingerprint = asking, g.front.fingerprint
	g.front.stand(contending)
}

// leave takes out a claimant that gives up. When it was the last one here that waited for the store's
// word, leave returns the token that is to be taken out of the store's line.
func (g *gate) leave(c *claimant) (left Token) {
	if g.front != c {
		g.line.remove(c)
		return Token{}
	}
	if g.line.first == nil {
		left = g.token
	} // otherwise the next asks with the same token, and has its place
	g.advance()
	return left
}

// handOn gives l's key, which it does not need any more, to the next in line, if there is one: with the
// lease as it is, unless too little is left of it or other processes are to have a turn first; then the
// next one's claim ends the lease. It reports whether nothing is left to do.
func (c *claimant) handOn(l *Lease) bool {
	hall := hallOf(c.digest)
	hall.mu.Lock()
	defer hall.mu.Unlock()
	g := c.gate
	if g == nil { // the lease was lost
		return false
	}
	next := g.line.pop()
	if next == nil {
		g.phase = asking
		return false
	}
	c.gate, g.front = nil, next
	now := time.Now()
	// Fences must stay below the store's time, by which the next grant's rises.
	behind := now.Sub(g.received) > time.Duration(g.handed+1)*time.Microsecond
	alike := next.lease == c.lease && next.lapse == c.lapse // the store keeps to those of the claim
	// An extension that ends with the maximum hold may still be on its way to the store, and must not cut
	// the lease of the next one short: that one is to have a token of its own then.
	whole := l.holdEnd.Sub(now) >= l.guard.lease
	deadline := l.Deadline()
	if g.handoffs > 0 && behind && alike && whole && deadline.Sub(now) >= l.guard.enough() {
		g.handoffs--
		g.handed++
		g.since = now
		next.token, next.fence = c.token, c.fence+1
		next.began, next.deadline = now, deadline
		c.token = Token{}
		next.stand(granted)
		return true
	}
	g.phase, g.yields, g.token = asking, g.token, Token{}
	next.stand(contending)
	return true
}

// forfeit leaves the gate because the guard is closed, and reports whether the key is there to be
// released: it is not when it was handed on, and another has it by the same token.
func (c *claimant) forfeit() bool {
	hall := hallOf(c.digest)
	hall.mu.Lock()
	defer hall.mu.Unlock()
	if c.gate != nil {
		c.withdraw()
	}
	return c.token != Token{}
}

// conclude has those who come from now on wait until the store has the answer.
func (c *claimant) conclude() {
	hall := hallOf(c.digest)
	hall.mu.Lock()
	defer hall.mu.Unlock()
	if c.gate != nil {
		c.gate.phase = asking
	}
}

// keep has the key held on for a while, because the store could not be told of the answer.
func (c *claimant) keep() {
	hall := hallOf(c.digest)
	hall.mu.Lock()
	defer hall.mu.Unlock()
	if g := c.gate; g != nil {
		g.phase, g.handoffs = holding, 0
		g.settleLine()
	}
}

// depart leaves the gate, with what those in line would be told by the store now, if that is known.
func (c *claimant) depart(found Claimed) {
	hall := hallOf(c.digest)
	hall.mu.Lock()
	defer hall.mu.Unlock()
	if c.gate == nil {
		return
	}
	if found.Status == StatusCompleted {
		c.gate.share(found, nil)
	}
	c.withdraw()
}

// withdraw leaves the gate to the next, who asks the store.
func (c *claimant) withdraw() {
	g := c.gate
	c.gate, g.token, g.grant = nil, Token{}, Grant{}
	g.advance()
}
