package dedupe

// Gates counts the gates of a store.
func Gates(store Store) int {
	n := 0
	for i := range halls {
		halls[i].mu.Lock()
		for at := range halls[i].gates {
			if at.store == store {
				n++
			}
		}
		halls[i].mu.Unlock()
	}
	return n
}
