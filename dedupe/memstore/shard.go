package memstore

import (
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// shard is a store of its own for a part of the digests. Its methods need mu.
type shard struct {
	mu      sync.Mutex
	records map[dedupe.Digest]*record
	ends    schedule

	// fence is the last one granted here. Kept for the shard and not for the key, it makes the
	// fences of a key rise over the removal of its record and leaves nothing behind for the key.
	fence uint64

	// news is what waiters are to be told when mu is unlocked.
	news []word

	// spare is the record that was removed last, for the next grant to use.
	spare *record
}

// word is what a waiter is to be told.
type word struct {
	claim dedupe.Claim
	grant dedupe.Grant
}

// purgedPerCall bounds what a call does for others. A call adds one record at most: anything above
// one keeps up.
const purgedPerCall = 4

// tick returns the time at which a call is carried out, having purged a few records. It is read
// under the lock, so that calls are carried out in the order of their times.
func (s *shard) tick() time.Time {
	now := time.Now()
	s.purge(now, purgedPerCall)
	return now
}

func (s *shard) claim(c dedupe.Claim, now time.Time) dedupe.Claimed {
	r := s.find(c.Digest, now)
	if r != nil && !r.completed && c.Yields != (dedupe.Token{}) && r.token == c.Yields && r.matches(c.Fingerprint) {
		if len(r.line) > 0 {
			s.pass(r, now)
		} else {
			s.grant(r, c, now)
		}
	}
	switch {
	case r == nil:
		r = s.blank()
		r.digest = c.Digest
		s.records[c.Digest] = r
		heap.Push(&s.ends, r)
		s.grant(r, c, now)
	case !r.matches(c.Fingerprint):
		return dedupe.Claimed{Status: dedupe.StatusMismatch}
	case r.completed:
		return dedupe.Claimed{Status: dedupe.StatusCompleted, Answer: r.answer}
	case r.lapsed(now):
		return dedupe.Claimed{Status: dedupe.StatusLapsed, Remaining: r.end.Sub(now)}
	case r.token != c.Token:
		r.queue(c)
		return dedupe.Claimed{
			Status: dedupe.StatusHeld, Remaining: r.leaseEnd.Sub(now), Queued: r.position(c.Token) >= 0,
		}
	default:
		r.hold(now, c.Lease, c.Lapse)
		heap.Fix(&s.ends, r.place)
	}
	return dedupe.Claimed{Status: dedupe.StatusGranted, Fence: r.fence}
}

// grant makes a claim the owner of a record.
func (s *shard) grant(r *record, c dedupe.Claim, now time.Time) {
	s.fence = max(s.fence+dedupe.FencesPerGrant, uint64(max(now.UnixMicro(), 0)))
	r.token, r.fence = c.Token, s.fence
	if c.Fingerprint != (dedupe.Fingerprint{}) {
		r.fingerprint = c.Fingerprint
	}
	r.hold(now, c.Lease, c.Lapse)
	heap.Fix(&s.ends, r.place)
}

// pass makes the first in the line the owner of a record, or removes it.
func (s *shard) pass(r *record, now time.Time) {
	if len(r.line) == 0 {
		s.remove(r)
		return
	}
	next := r.line[0]
	r.line = slices.Delete(r.line, 0, 1)
	s.grant(r, next, now)
	s.news = append(s.news, word{next, dedupe.Grant{Fence: r.fence, Since: now, Lease: next.Lease}})
}

func (s *shard) extend(h dedupe.Holder, lease time.Duration, now time.Time) error {
	r := s.find(h.Digest, now)
	if r == nil || !r.heldBy(h.Token, now) {
		return dedupe.ErrLeaseLost
	}
	r.hold(now, lease, r.lapse)
	heap.Fix(&s.ends, r.place)
	return nil
}

func (s *shard) complete(h dedupe.Holder, answer []byte, retention time.Duration, now time.Time) error {
	r := s.find(h.Digest, now)
	switch {
	case r == nil:
		return dedupe.ErrLeaseLost
	case r.completed && r.token == h.Token:
		return nil
	case !r.heldBy(h.Token, now):
		return dedupe.ErrLeaseLost
	}
	r.complete(now, answer, retention)
	heap.Fix(&s.ends, r.place)
	for _, waiting := range r.line { // they will find the answer
		s.news = append(s.news, word{waiting, dedupe.Grant{}})
	}
	r.line = nil
	return nil
}

// release looks at the clock only when it has to: its owner's record goes, whether its time is over
// or not.
func (s *shard) release(h dedupe.Holder) error {
	r := s.records[h.Digest]
	if r != nil && r.token == h.Token && !r.completed {
		now := time.Time{}
		if len(r.line) > 0 {
			now = time.Now()
		}
		s.pass(r, now)
		return nil
	}
	if r = s.find(h.Digest, s.tick()); r != nil {
		if i := r.position(h.Token); i >= 0 {
			r.line = slices.Delete(r.line, i, i+1)
			return nil
		}
		return dedupe.ErrLeaseLost
	}
	return nil
}

// find returns the record of d, or nil when there is none or its time is over.
func (s *shard) find(d dedupe.Digest, now time.Time) *record {
	r := s.records[d]
	if r != nil && r.over(now) {
		s.pass(r, now)
		return s.records[d]
	}
	return r
}

// purge removes up to limit records whose time is over.
func (s *shard) purge(now time.Time, limit int) {
	for range limit {
		if len(s.ends) == 0 || !s.ends[0].over(now) {
			return
		}
		s.pass(s.ends[0], now)
	}
}

// blank returns a record without contents.
func (s *shard) blank() *record {
	r := s.spare
	if r == nil {
		return new(record)
	}
	s.spare = nil
	return r
}

func (s *shard) remove(r *record) {
	delete(s.records, r.digest)
	heap.Remove(&s.ends, r.place)
	*r = record{line: r.line[:0]}
	s.spare = r
}
