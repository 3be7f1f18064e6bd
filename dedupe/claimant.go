package dedupe

import "time"

// claimant is a lease's claim to one key: in line for it, contending for it, or having it. What
// follows its gate is guarded by that gate's hall, and is the lease's own when it has no gate.
type claimant struct {
	digest Digest
	key    string

	token Token // by which the store knows the owner
	fence uint64

	gate        *gate // where it stands, or nil
	fingerprint Fingerprint
	lease       time.Duration // of its claim
	lapse       time.Duration // of its claim
	patient     bool          // it waits; otherwise it stays only until something is decided
	standing    standing
	began       time.Time // once granted: before the store granted it, or when it was handed on
	deadline    time.Time // once granted: of the lease that it got
	decision    *decision // once decided

	wake chan struct{} // told that standing changed; made when it first waits
	next *claimant     // in line
}

// decision is why a claimant does not get the key.
type decision struct {
	found Claimed
	err   error
}

// standing is how far a claimant is.
type standing uint8

const (
	// inLine: others of this process are before it.
	inLine standing = iota
	// contending: it is at the front and is to ask the store.
	contending
	// queued: it is at the front and waits for the store's word.
	queued
	// granted: it has the key.
	granted
	// decided: it does not get the key; decision says why.
	decided
)

// stand changes the standing of a claimant that may be waiting.
func (c *claimant) stand(s standing) {
	c.standing = s
	c.notify()
}

func (c *claimant) notify() {
	select {
	case c.wake <- struct{}{}:
	default: // it has been told already, or does not wait
	}
}

// refuse decides a claimant's claim.
func (c *claimant) refuse(claimed Claimed, err error) {
	c.gate, c.decision = nil, &decision{claimed, err}
	c.stand(decided)
}

// line is a queue of claimants.
type line struct {
	first, last *claimant
	patient     int // how many of them wait
	length      int
}

func (q *line) push(c *claimant) {
	c.next = nil
	if q.last == nil {
		q.first = c
	} else {
		q.last.next = c
	}
	q.last = c
	q.count(c, 1)
}

func (q *line) pop() *claimant {
	c := q.first
	if c == nil {
		return nil
	}
	q.first, c.next = c.next, nil
	if q.first == nil {
		q.last = nil
	}
	q.count(c, -1)
	return c
}

// remove takes one out.
func (q *line) remove(c *claimant) {
	q.filter(func(other *claimant) bool { return other != c })
}

// filter takes out those that stay says no to.
func (q *line) filter(stay func(*claimant) bool) {
	all := *q
	*q = line{}
	for c := all.pop(); c != nil; c = all.pop() {
		if stay(c) {
			q.push(c)
		}
	}
}

func (q *line) count(c *claimant, n int) {
	q.length += n
	if c.patient {
		q.patient += n
	}
}
