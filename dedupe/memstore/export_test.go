package memstore

import (
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// Kept counts the records that are in memory, whether their time is over or not.
func (s *Store) Kept() int {
	total := 0
	for i := range s.shards {
		s.shards[i].mu.Lock()
		total += len(s.shards[i].records)
		s.shards[i].mu.Unlock()
	}
	return total
}

// TTL returns how long the record of d has left.
func (s *Store) TTL(d dedupe.Digest) (time.Duration, bool) {
	sh := s.shard(d)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := time.Now()
	r := sh.find(d, now)
	if r == nil {
		return 0, false
	}
	return r.end.Sub(now), true
}
