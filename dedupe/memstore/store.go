package memstore

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var _ dedupe.Store = (*Store)(nil)

// Store implements [dedupe.Store]. Make one with [New].
//
// Guards validate the durations they pass on. A caller that does not is met halfway: a lease, lapse
// or retention that is not positive is over at once.
type Store struct {
	shards [shards]shard
}

// shards is a power of two, and large enough for two goroutines to meet in one of them rarely.
const shards = 64

// New returns an empty store.
func New() *Store {
	s := new(Store)
	for i := range s.shards {
		s.shards[i].records = make(map[dedupe.Digest]*record)
	}
	return s
}

// Claim implements [dedupe.Store]. The answer in the result is the caller's own copy.
func (s *Store) Claim(ctx context.Context, c dedupe.Claim) (found dedupe.Claimed, err error) {
	err = s.do(ctx, c.Digest, func(sh *shard) error {
		found = sh.claim(c, sh.tick())
		return nil
	})
	// What is stored is never written to again: the copy needs no lock.
	found.Answer = bytes.Clone(found.Answer)
	return found, err
}

// Extend implements [dedupe.Store]. The lapse that came with the claim is kept.
func (s *Store) Extend(ctx context.Context, h dedupe.Holder, lease time.Duration) error {
	return s.do(ctx, h.Digest, func(sh *shard) error { return sh.extend(h, lease, sh.tick()) })
}

// Complete implements [dedupe.Store]. The answer is copied. When h has completed the key before, the
// answer and the retention of the first time stay.
func (s *Store) Complete(ctx context.Context, h dedupe.Holder, answer []byte, retention time.Duration) error {
	answer = bytes.Clone(answer)
	return s.do(ctx, h.Digest, func(sh *shard) error { return sh.complete(h, answer, retention, sh.tick()) })
}

// Release implements [dedupe.Store]. It removes the lapsed record of its owner too, but never an
// answer: on a completed record it returns [dedupe.ErrLeaseLost].
func (s *Store) Release(ctx context.Context, h dedupe.Holder) error {
	return s.do(ctx, h.Digest, func(sh *shard) error { return sh.release(h) })
}

// do carries out one operation on the shard of d, and then tells waiters what came of it.
func (s *Store) do(ctx context.Context, d dedupe.Digest, operation func(*shard) error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", dedupe.ErrStoreUnavailable, context.Cause(ctx))
	}
	sh := s.shard(d)
	sh.mu.Lock()
	err := operation(sh)
	news := sh.news
	sh.news = nil
	sh.mu.Unlock()
	s.tell(news)
	return err
}

// tell wakes waiters. What one does not want any more goes to the next.
func (s *Store) tell(news []word) {
	for _, w := range news {
		if !w.claim.Waiter.Wake(w.claim.Holder, w.grant) && w.grant.Fence != 0 {
			_ = s.Release(context.Background(), w.claim.Holder) // it cannot fail: there is nothing to wait for
		}
	}
}

// Len purges every record whose time is over and returns how many are left.
func (s *Store) Len() int {
	total := 0
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.purge(time.Now(), len(sh.records))
		total += len(sh.records)
		news := sh.news
		sh.news = nil
		sh.mu.Unlock()
		s.tell(news)
	}
	return total
}

// shard returns the part of the store that d is in. Digests are hashes: any of their bits will do.
func (s *Store) shard(d dedupe.Digest) *shard {
	return &s.shards[d[0]%shards]
}
