package memstore

import (
	"context"
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
	var left time.Duration
	exists := false
	_ = s.do(context.Background(), d, func(sh *shard) error {
		now := time.Now()
		if r := sh.find(d, now); r != nil {
			left, exists = r.end.Sub(now), true
		}
		return nil
	}) // it fails only when its context is done
	return left, exists
}
