package storetest

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// faulty is the plainest store that does what the contract says, but for one fault.
type faulty struct {
	fault fault

	mu      sync.Mutex
	entries map[dedupe.Digest]*entry
	fence   uint64
	former  map[dedupe.Token]bool
}

type entry struct {
	claim      dedupe.Claim
	fence      uint64
	leaseEnd   time.Time
	end        time.Time
	completed  bool
	answer     []byte
	line       []dedupe.Claim
	unreadable bool
}

func newFaulty(f fault) *faulty {
	return &faulty{fault: f, entries: map[dedupe.Digest]*entry{}, former: map[dedupe.Token]bool{}}
}

// has reports whether the store's fault is one of those.
func (s *faulty) has(faults ...fault) bool {
	for _, f := range faults {
		if s.fault == f {
			return true
		}
	}
	return false
}

func (s *faulty) Extend(ctx context.Context, h dedupe.Holder, lease time.Duration) error {
	if err := s.unavailable(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h = s.cut(h)
	now := time.Now()
	e := s.find(h.Digest, now)
	if e == nil && s.has(extendRevives) {
		s.grant(dedupe.Claim{Holder: h, Lease: lease}, now)
		return nil
	}
	if e != nil && e.unreadable {
		return s.overwrite(e, extendOverwritesTheUnreadable)
	}
	switch {
	case e == nil,
		e.completed && !s.has(extendTakesCompleted),
		!e.completed && e.claim.Token != h.Token && !s.has(extendIgnoresTheToken),
		!e.completed && !now.Before(e.leaseEnd) && !s.has(extendTakesLapsed):
		return s.lost()
	}
	switch {
	case s.has(extendDoesNothing):
		return nil
	case s.has(extendOnlyProlongs) && now.Add(lease).Before(e.leaseEnd):
		return nil
	case s.has(extendAddsUp):
		lease += e.leaseEnd.Sub(now)
	case s.has(extendRaisesTheFence):
		e.fence = s.nextFence(now)
	case s.has(extendDropsTheFingerprint):
		e.claim.Fingerprint = dedupe.Fingerprint{}
	case s.has(extendDropsTheLapse):
		e.claim.Lapse = 0
	case s.has(extendDropsTheLine):
		e.line = nil
	case s.has(extendIsTwoSteps):
		s.pause()
		s.entries[h.Digest] = e
	}
	s.hold(e, now, lease)
	return nil
}

func (s *faulty) Complete(ctx context.Context, h dedupe.Holder, answer []byte, retention time.Duration) error {
	if err := s.unavailable(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h = s.cut(h)
	now := time.Now()
	e := s.find(h.Digest, now)
	if e == nil && s.has(completeRevives) {
		e = &entry{claim: dedupe.Claim{Holder: h, Lease: long}, leaseEnd: now.Add(long)}
		s.entries[h.Digest] = e
	}
	switch {
	case e == nil:
		return s.lost()
	case e.unreadable:
		return s.overwrite(e, completeOverwritesTheUnreadable)
	case e.claim.Token != h.Token && !s.has(completeIgnoresTheToken):
		return s.lost()
	case e.completed && s.has(completeIsRefusedAgain):
		return s.lost()
	case e.completed && s.has(completeReplacesTombstones) && e.answer == nil:
	case e.completed && !s.has(completeOverwrites):
		return nil
	case !now.Before(e.leaseEnd) && !e.completed && !s.has(completeTakesLapsed):
		return s.lost()
	}
	switch {
	case s.has(completeForgets):
		delete(s.entries, h.Digest)
		return nil
	case s.has(completeIsTwoSteps):
		delete(s.entries, h.Digest)
		s.pause()
		s.entries[h.Digest] = e
	case s.has(completeDropsTheFingerprint):
		e.claim.Fingerprint = dedupe.Fingerprint{}
	case s.has(retentionHasTheLapse):
		retention += e.claim.Lapse
	case s.has(retentionEndsEarly):
		retention /= 10
	case s.has(retentionNeverEnds), s.has(tombstonesNeverEnd) && answer == nil:
		retention += time.Hour
	}
	e.completed = true
	if !s.has(oldAnswerStays) || e.answer == nil {
		e.answer = s.store(answer)
	}
	if !s.has(answerEndsWithTheLease) {
		e.end = now.Add(retention)
	}
	s.end(e)
	return nil
}

func (s *faulty) Release(ctx context.Context, h dedupe.Holder) error {
	if err := s.unavailable(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h = s.cut(h)
	now := time.Now()
	e := s.find(h.Digest, now)
	switch {
	case e == nil && s.has(releaseRefusesNothing):
		return s.lost()
	case e == nil, s.has(releaseDoesNothing):
		return nil
	case e.unreadable:
		return s.overwrite(e, releaseRemovesTheUnreadable)
	case e.claim.Token != h.Token && s.leave(e, h):
		return nil
	case e.completed && !s.has(releaseRemovesAnswers),
		!e.completed && e.claim.Token != h.Token && !s.has(releaseIgnoresTheToken),
		!e.completed && !now.Before(e.leaseEnd) && s.has(releaseRefusesLapsed):
		return s.lost()
	}
	if s.has(fencesRunAhead) { // nothing is left to go on from
		s.fence = 0
	}
	switch {
	case s.has(releaseLapses) && e.claim.Lapse > 0:
		e.leaseEnd = now
		return nil
	case s.has(oldFingerprintStays, oldLapseStays):
		e.end, e.leaseEnd = now, now
		return nil
	}
	s.pass(e, now)
	return nil
}

// ttl is for [WithTTLs].
func (s *faulty) ttl(_ context.Context, d dedupe.Digest) (time.Duration, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	e := s.find(d, now)
	switch {
	case e == nil && s.has(nothingIsRemoved):
		return time.Hour, true, nil
	case e == nil:
		return 0, false, nil
	case s.has(nothingHasATTL):
		return 0, true, nil
	}
	return e.end.Sub(now), true, nil
}

// corrupt is for [WithCorrupt].
func (s *faulty) corrupt(_ context.Context, d dedupe.Digest, _ Corruption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[d] = &entry{unreadable: true, end: time.Now().Add(long)}
	return nil
}

// find returns the entry of d while its time is not over. It stays in the map, for faults to find.
func (s *faulty) find(d dedupe.Digest, now time.Time) *entry {
	e := s.entries[d]
	for s.passes(e, now) {
		s.pass(e, now)
		e = s.entries[d]
	}
	if e == nil || !now.Before(e.end) && !s.keeps(e, now) {
		return nil
	}
	return e
}

// keeps reports whether the fault lets calls find what is over.
func (s *faulty) keeps(e *entry, now time.Time) bool {
	return s.has(expiryIsForgotten) && now.Before(e.end.Add(time.Hour)) ||
		s.has(lineOfTheDeadStays) && len(e.line) > 0
}

func (s *faulty) matches(a, b dedupe.Fingerprint) bool {
	none := dedupe.Fingerprint{}
	switch {
	case s.has(fingerprintIsIgnored):
		return true
	case s.has(fingerprintNeverMatches) && a != none && b != none:
		return false
	case s.has(fingerprintIsCut):
		return a == none || b == none || bytes.Equal(a[:16], b[:16])
	case s.has(zeroIsAFingerprint):
		return a == b
	}
	return a == none || b == none || a == b
}

func (s *faulty) cut(h dedupe.Holder) dedupe.Holder {
	switch {
	case s.has(digestIsCut):
		clear(h.Digest[8:])
	case s.has(digestIsIgnored):
		clear(h.Digest[1:])
	case s.has(tokenIsCut):
		clear(h.Token[8:])
	case s.has(zeroTokenIsNobody) && h.Token == dedupe.Token{}:
		h.Token = newToken()
	}
	return h
}

func (s *faulty) store(answer []byte) []byte {
	switch {
	case s.has(answerIsAliased), answer == nil && !s.has(tombstoneIsEmpty):
		return answer
	case s.has(answerIsText):
		answer = []byte(strings.ToValidUTF8(string(answer), "?"))
	case s.has(answerIsTrimmed):
		answer = bytes.TrimSpace(answer)
	case s.has(answerEndsWithNUL):
		answer, _, _ = bytes.Cut(answer, []byte{0})
	case s.has(answerIsLimited):
		answer = answer[:min(len(answer), 64<<10)]
	case s.has(answerMayBeANumber):
		if n, err := strconv.ParseFloat(string(answer), 64); err == nil {
			return strconv.AppendFloat(nil, n, 'g', -1, 64)
		}
	case s.has(nilIsAWord) && string(answer) == "nil", s.has(emptyIsATombstone) && len(answer) == 0:
		return nil
	}
	return append(make([]byte, 0, len(answer)+64), answer...)
}

func (s *faulty) load(answer []byte) []byte {
	if s.has(answerIsShared, answerIsAliased) {
		return answer
	}
	return bytes.Clone(answer)
}

// pause lets others in where there ought to be one step.
func (s *faulty) pause() {
	s.mu.Unlock()
	time.Sleep(time.Millisecond)
	s.mu.Lock()
}

func (s *faulty) unavailable(ctx context.Context) error {
	switch {
	case ctx.Err() == nil, s.has(contextIsIgnored):
		return nil
	case s.has(causeIsSwallowed):
		return dedupe.ErrStoreUnavailable
	}
	return errors.Join(dedupe.ErrStoreUnavailable, ctx.Err())
}

func (s *faulty) lost() error {
	if s.has(lossIsAnOutage) {
		return dedupe.ErrStoreUnavailable
	}
	return dedupe.ErrLeaseLost
}

func (s *faulty) unreadable() error {
	if s.has(unreadableIsAnOutage) {
		return errors.Join(dedupe.ErrRecordUnreadable, dedupe.ErrStoreUnavailable)
	}
	return dedupe.ErrRecordUnreadable
}

// overwrite refuses an unreadable entry, and does away with it all the same when that is the fault.
func (s *faulty) overwrite(e *entry, f fault) error {
	if s.has(f) {
		e.end = time.Time{}
	}
	return s.unreadable()
}
