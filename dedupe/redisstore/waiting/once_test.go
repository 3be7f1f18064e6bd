package waiting

import "testing"

// repeatsShare has repeats wait in other processes, several in each. When the first one's answer comes all
// of them get it, and each process asks for it once.
func repeatsShare(t *testing.T, w watch) {
	r := request{Kind: fetch, Key: "key", Wait: wait}
	first := w.child(t, long).begin(r)
	first.awaitGrant(t)
	children := []process{w.child(t, long), w.child(t, long)}
	repeats := w.lineUp(t, r, children...)
	for range 7 {
		for _, c := range children {
			repeats = append(repeats, c.begin(r))
		}
	}
	first.finish("the first one's")
	if e := first.awaitEnd(t, "done"); e.Value != "the first one's" {
		t.Errorf("the first got %q", e.Value)
	}
	for _, repeat := range repeats {
		if e := repeat.awaitEnd(t, "done"); e.Value != "the first one's" {
			t.Errorf("a repeat got %q", e.Value)
		}
		if _, ran := <-repeat.granted; ran {
			t.Error("a repeat ran")
		}
	}
	if line := w.record(t).line(); len(line) > 0 {
		t.Errorf("a completed record has %d places in its line", len(line))
	}
}

// failureRunsOne has the first one fail: one of the repeats runs, and the others get its answer.
func failureRunsOne(t *testing.T, w watch) {
	r := request{Kind: fetch, Key: "key", Wait: wait}
	first := w.child(t, long).begin(r)
	first.awaitGrant(t)
	repeats := w.lineUp(t, r, w.child(t, long), w.child(t, long), w.child(t, long))
	first.finish("")
	first.awaitEnd(t, "failed")
	oneRuns(t, repeats)
}

// deathRunsOne has the first one's process die: one of the repeats runs, and the others get its answer.
func deathRunsOne(t *testing.T, w watch) {
	r := request{Kind: fetch, Key: "key", Wait: wait}
	dead := w.child(t, short)
	begin(t, dead, r)
	repeats := w.lineUp(t, r, w.child(t, short), w.child(t, short), w.child(t, short))
	dead.kill()
	oneRuns(t, repeats)
}

// oneRuns checks that the first of several repeats runs and the others get its answer.
func oneRuns(t *testing.T, repeats []*attempt) {
	t.Helper()
	repeats[0].awaitGrant(t)
	for _, other := range repeats[1:] {
		other.wantWaiting(t)
	}
	repeats[0].finish("the second one's")
	for i, repeat := range repeats {
		if e := repeat.awaitEnd(t, "done"); e.Value != "the second one's" {
			t.Errorf("repeat %d got %q", i, e.Value)
		}
		if _, ran := <-repeat.granted; ran {
			t.Errorf("repeat %d ran", i)
		}
	}
}
