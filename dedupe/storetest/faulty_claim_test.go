package storetest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

func (s *faulty) Claim(ctx context.Context, c dedupe.Claim) (dedupe.Claimed, error) {
	if err := s.unavailable(ctx); err != nil {
		return dedupe.Claimed{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Holder = s.cut(c.Holder)
	now := time.Now()
	s.jump(s.entries[c.Digest], c, now)
	e := s.yield(s.find(c.Digest, now), c, now)
	if e != nil && e.unreadable && !s.has(unreadableIsGranted) {
		return dedupe.Claimed{}, s.unreadable()
	}
	if e == nil || e.unreadable {
		if s.has(claimIsTwoSteps) {
			s.pause()
			now = time.Now()
		}
		return s.grant(c, now), nil
	}
	found := s.refuse(e, c, now)
	if found.Status == dedupe.StatusGranted {
		s.restart(e, c, now)
		found.Fence = e.fence
		return found, nil
	}
	if found.Status == dedupe.StatusHeld {
		found.Queued = s.queue(e, c)
	}
	if s.has(mismatchIsQueued) && found.Status == dedupe.StatusMismatch {
		found.Queued = s.queue(e, c)
	}
	if s.has(refusedClaimProlongs) {
		e.leaseEnd = now.Add(c.Lease)
		e.end = e.leaseEnd.Add(c.Lapse)
	}
	return found, nil
}

// refuse says what c finds where there is a record.
func (s *faulty) refuse(e *entry, c dedupe.Claim, now time.Time) dedupe.Claimed {
	over := !now.Before(e.leaseEnd)
	own := e.claim.Token == c.Token
	mismatch := !s.matches(e.claim.Fingerprint, c.Fingerprint)
	switch {
	case mismatch && s.has(fingerprintComesLast) && !e.completed && (over || !own):
	case mismatch && s.has(ownerIsNotCompared) && own:
	case mismatch:
		if s.has(mismatchReplaces) {
			e.claim.Fingerprint = c.Fingerprint
		}
		found := dedupe.Claimed{Status: dedupe.StatusMismatch}
		if s.has(mismatchTellsTheAnswer) {
			found.Answer = e.answer
		}
		return found
	}
	switch {
	case s.has(heldIsGranted) && !e.completed && !over,
		s.has(formerTokensAreGranted) && s.former[c.Token],
		s.has(ownerRunsAgain) && e.completed && own,
		s.has(ownerResumes, expiryKeepsTheFence) && !e.completed && over && own:
	case s.has(completedLapses) && e.completed && over && e.claim.Lapse > 0:
		return dedupe.Claimed{Status: dedupe.StatusLapsed, Remaining: e.end.Sub(now)}
	case e.completed:
		return dedupe.Claimed{Status: dedupe.StatusCompleted, Answer: s.load(e.answer)}
	case over && !s.has(lapseIsHeld):
		found := dedupe.Claimed{Status: dedupe.StatusLapsed, Remaining: e.end.Sub(now)}
		if s.has(lapseHasNoRemaining) {
			found.Remaining = 0
		}
		return found
	case !own || s.has(ownTokenIsRefused):
		if s.has(heldReplacesTheFingerprint) {
			e.claim.Fingerprint = c.Fingerprint
		}
		found := dedupe.Claimed{Status: dedupe.StatusHeld, Remaining: e.leaseEnd.Sub(now)}
		switch {
		case s.has(remainingIsZero):
			found.Remaining = 0
		case s.has(remainingStands):
			found.Remaining = e.claim.Lease
		case s.has(remainingHasTheLapse):
			found.Remaining = e.end.Sub(now)
		}
		return found
	}
	return dedupe.Claimed{Status: dedupe.StatusGranted}
}

func (s *faulty) grant(c dedupe.Claim, now time.Time) dedupe.Claimed {
	old := s.entries[c.Digest]
	e := &entry{claim: c, fence: s.nextFence(now)}
	if old != nil {
		switch {
		case s.has(oldAnswerStays):
			e.answer = old.answer
		case s.has(oldFingerprintStays):
			e.claim.Fingerprint = old.claim.Fingerprint
		case s.has(expiryKeepsTheFence) && old.claim.Token == c.Token:
			e.fence = old.fence
		case s.has(oldLapseStays):
			e.claim.Lapse = old.claim.Lapse
		}
	}
	s.hold(e, now, c.Lease)
	s.entries[c.Digest] = e
	s.former[c.Token] = true
	return dedupe.Claimed{Status: dedupe.StatusGranted, Fence: e.fence}
}

func (s *faulty) restart(e *entry, c dedupe.Claim, now time.Time) {
	if s.has(heldIsGranted, formerTokensAreGranted) {
		e.claim.Token = c.Token
	}
	if s.has(repeatDropsTheLine) {
		e.line = nil
	}
	if s.has(repeatRaisesTheFence) {
		e.fence = s.nextFence(now)
	}
	if !s.has(repeatKeepsTheLease) {
		e.claim.Lapse = c.Lapse
		s.hold(e, now, c.Lease)
	}
}

func (s *faulty) hold(e *entry, now time.Time, lease time.Duration) {
	switch {
	case s.has(leaseEndsEarly):
		lease /= 10
	case s.has(leaseNeverEnds):
		lease += time.Hour
	}
	e.leaseEnd = now.Add(lease)
	lapse := e.claim.Lapse
	switch {
	case s.has(lapseIsIgnored):
		lapse = 0
	case s.has(lapseNeverEnds) && lapse > 0, s.has(everythingLapses):
		lapse += time.Hour
	}
	e.end = e.leaseEnd.Add(lapse)
}

func (s *faulty) nextFence(now time.Time) uint64 {
	switch {
	case s.has(fenceIsMissing):
		return 0
	case s.has(fenceStands):
		return uint64(time.Date(2025, time.May, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	case s.has(fenceFallsBack):
		s.fence--
		return uint64(now.UnixMicro())/1e10*1e10 + s.fence
	case s.has(fenceIsACounter):
		s.fence++
		return s.fence
	}
	step := uint64(dedupe.FencesPerGrant)
	if s.has(fencesRunAhead) { // by more than a busy machine takes for a few grants
		step = 1e6
	}
	s.fence = max(s.fence+step, uint64(now.UnixMicro()))
	return s.fence
}
