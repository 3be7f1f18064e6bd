package memstore

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// record is what the store knows about one digest: held until leaseEnd, lapsed from then until end;
// or completed until end. Both ends are exclusive.
type record struct {
	digest      dedupe.Digest
	token       dedupe.Token
	fingerprint dedupe.Fingerprint
	fence       uint64

	completed bool
	answer    []byte

	line []dedupe.Claim // waiting for it, in their order

	leaseEnd time.Time
	lapse    time.Duration
	end      time.Time
	place    int // in the shard's schedule
}

// hold starts a lease. Whoever calls it puts the schedule in order.
func (r *record) hold(now time.Time, lease, lapse time.Duration) {
	r.lapse = lapse
	r.leaseEnd = now.Add(max(lease, 0))
	r.end = r.leaseEnd.Add(max(lapse, 0))
}

// complete ends the lease with an answer. Whoever calls it puts the schedule in order.
func (r *record) complete(now time.Time, answer []byte, retention time.Duration) {
	r.completed = true
	r.answer = answer
	r.end = now.Add(max(retention, 0))
}

func (r *record) matches(f dedupe.Fingerprint) bool {
	none := dedupe.Fingerprint{}
	return r.fingerprint == f || r.fingerprint == none || f == none
}

func (r *record) heldBy(t dedupe.Token, now time.Time) bool {
	return !r.completed && r.token == t && now.Before(r.leaseEnd)
}

func (r *record) lapsed(now time.Time) bool {
	return !r.completed && !now.Before(r.leaseEnd)
}

// queue puts a claim that waits at the end of the line. One that is in it keeps its place.
func (r *record) queue(c dedupe.Claim) {
	switch i := r.position(c.Token); {
	case c.Waiter == nil:
	case i < 0:
		r.line = append(r.line, c)
	default:
		r.line[i] = c
	}
}

// position returns where in the line a token is, -1 if it is not there.
func (r *record) position(t dedupe.Token) int {
	return slices.IndexFunc(r.line, func(c dedupe.Claim) bool { return c.Token == t })
}

func (r *record) over(now time.Time) bool {
	return !now.Before(r.end)
}
