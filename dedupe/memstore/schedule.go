package memstore

// schedule is a heap of records, the one that ends first on top. Each record knows its place, so
// that one whose end moves can be put right without a search.
type schedule []*record //nolint:recvcheck // container/heap wants Push and Pop on the pointer, sorting needs none

// Len implements [sort.Interface].
func (s schedule) Len() int { return len(s) }

// Less implements [sort.Interface].
func (s schedule) Less(i, j int) bool { return s[i].end.Before(s[j].end) }

// Swap implements [sort.Interface].
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push implements [container/heap.Interface].
func (s *schedule) Push(x any) {
	r := x.(*record) //nolint:errcheck // nothing else is pushed, and a panic says so
	r.place = len(*s)
	*s = append(*s, r)
}

// Pop implements [container/heap.Interface].
func (s *schedule) Pop() any {
	last := len(*s) - 1
	r := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return r
}
