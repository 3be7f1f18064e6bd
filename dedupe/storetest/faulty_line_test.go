package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// yield ends the lease of the owner that c yields, and returns what there is then.
func (s *faulty) yield(e *entry, c dedupe.Claim, now time.Time) *entry {
	switch {
	case e == nil, c.Yields == dedupe.Token{}, s.has(yieldsAreIgnored),
		e.claim.Token != c.Yields && !s.has(yieldsTakeAnyToken),
		e.completed && !s.has(yieldsUndoCompletions),
		!s.matches(e.claim.Fingerprint, c.Fingerprint) && !s.has(yieldsIgnoreTheFingerprint):
		return e
	case s.has(yieldsBarge):
		line := e.line
		delete(s.entries, c.Digest)
		s.grant(c, now)
		s.entries[c.Digest].line = line
	default:
		s.pass(e, now)
	}
	return s.find(c.Digest, now)
}

// passes reports whether those in the line of e come next, because its time is over.
func (s *faulty) passes(e *entry, now time.Time) bool {
	switch {
	case e == nil, len(e.line) == 0, s.has(expiryDropsTheLine, lineOfTheDeadStays):
		return false
	case s.has(lapsedIsPassedOn) && !e.completed && !now.Before(e.leaseEnd):
		return true
	}
	return !now.Before(e.end)
}

// jump puts c first in the line of e, when the time of e is over and that is the fault.
func (s *faulty) jump(e *entry, c dedupe.Claim, now time.Time) {
	if e != nil && s.has(askerTakesOver) && !now.Before(e.end) && s.leave(e, c.Holder) {
		e.line = slices.Insert(e.line, 0, c)
	}
}

// queue gives c a place in the line of e, if it wants one, and reports whether it has one.
func (s *faulty) queue(e *entry, c dedupe.Claim) bool {
	i := slices.IndexFunc(e.line, func(w dedupe.Claim) bool { return w.Token == c.Token })
	switch {
	case s.has(nobodyIsQueued):
		return false
	case c.Waiter == nil && !s.has(everybodyIsQueued):
		return i >= 0
	case i >= 0 && s.has(askingAgainLosesThePlace):
		e.line = append(slices.Delete(e.line, i, i+1), c)
	case i >= 0 && s.has(askingAgainIsNotQueued):
		return false
	case i < 0 || s.has(askingAgainIsANewPlace):
		e.line = append(e.line, c)
	}
	if c.Waiter == nil {
		e.line[len(e.line)-1].Waiter = gone{}
	}
	return true
}

// leave takes h out of the line of e, and reports whether it was there.
func (s *faulty) leave(e *entry, h dedupe.Holder) bool {
	i := slices.IndexFunc(e.line, func(w dedupe.Claim) bool { return w.Token == h.Token })
	if i < 0 || s.has(releaseKeepsThePlace) {
		return false
	}
	e.line = slices.Delete(e.line, i, i+1)
	return true
}

// pass makes the first in the line of e the owner, or removes e.
func (s *faulty) pass(e *entry, now time.Time) {
	d := e.claim.Digest
	if len(e.line) == 0 || s.has(lineIsForgotten) {
		delete(s.entries, d)
		return
	}
	line := e.line
	if s.has(keysAreFreeBeforeTheyAreGranted) {
		e.line, e.end, e.leaseEnd = nil, now, now
		s.pause()
		if found := s.find(d, time.Now()); found != nil {
			found.line = line
			return
		}
	}
	first := 0
	if s.has(lastComesFirst) {
		first = len(line) - 1
	}
	next := line[first]
	line = slices.Delete(line, first, first+1)
	fence := e.fence
	granted := next
	switch {
	case s.has(grantsNeverEnd):
		granted.Lease += time.Hour
	case s.has(grantsDropTheFingerprint):
		granted.Fingerprint = dedupe.Fingerprint{}
	case s.has(grantsDropTheLapse):
		granted.Lapse = 0
	}
	found := s.grant(granted, now)
	switch {
	case s.has(grantsHaveTheNextFence):
		found.Fence = fence + 1
	case s.has(grantsAreToldAnotherFence):
		found.Fence++
	}
	e = s.entries[d]
	if !s.has(grantDropsTheLine) {
		e.line = line
	}
	if s.has(grantsHaveTheNextFence) {
		e.fence = found.Fence
	}
	grant := dedupe.Grant{Fence: found.Fence, Since: now, Lease: next.Lease}
	s.tell(next, grant)
	if s.has(grantsAreToldToTwo) && len(line) > 0 {
		s.tell(line[0], grant)
	}
}

// end wakes those that wait for what is completed now.
func (s *faulty) end(e *entry) {
	line := e.line
	if s.has(completionWakesTheFirst) && len(line) > 1 {
		line = line[:1]
	}
	for _, c := range line {
		grant := dedupe.Grant{}
		if s.has(completionGrants) {
			grant = dedupe.Grant{Fence: e.fence, Since: time.Now(), Lease: c.Lease}
		}
		s.tell(c, grant)
	}
	if !s.has(completionKeepsTheLine) {
		e.line = nil
	}
}

// tell tells a waiter something when the store is not locked any more.
func (s *faulty) tell(c dedupe.Claim, g dedupe.Grant) {
	if s.has(grantsAreNotTold) {
		return
	}
	go func() {
		if !c.Waiter.Wake(c.Holder, g) && g.Fence != 0 && !s.has(unwantedGrantsStay) {
			_ = s.Release(context.Background(), c.Holder)
		}
	}()
}
