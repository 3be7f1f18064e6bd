package redisstore

// Quiet reports whether no call is under way or waits to be sent.
func Quiet(s *Store) bool {
	b := &s.calls.batch
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.alone == 0 && b.pipelines == 0 && len(b.queue) == 0
}

// Sendable is how many calls can be under way at a time.
const Sendable = maxAlone + maxPipelines*maxPipeline
