package waiting

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// deadInLine kills a process that is first in line: the key goes past it to the one behind, in the same
// moment.
func deadInLine(t *testing.T, w watch) {
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	holder := w.member(t, long).begin(lockKey)
	first := holder.awaitGrant(t)
	dead, alive := w.child(t, long), w.child(t, long)
	waiting := w.lineUp(t, lockKey, dead, alive)
	places := w.record(t).line()
	dead.kill()
	w.awaitChannels(t, 1)

	holder.release(t)
	if owner := w.record(t).owner(); owner != places[1] {
		t.Errorf("after the release the owner is not who stood behind the dead one")
	}
	if fence := waiting[1].awaitGrant(t); fence <= first {
		t.Errorf("fence %d after fence %d", fence, first)
	}
	waiting[1].release(t)
	w.awaitFree(t)
}

// allDead kills all who wait: the release finds nobody and leaves nothing.
func allDead(t *testing.T, w watch) {
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	holder := w.member(t, long).begin(lockKey)
	holder.awaitGrant(t)
	children := []*child{w.child(t, long), w.child(t, long)}
	w.lineUp(t, lockKey, children[0], children[1])
	for _, c := range children {
		c.kill()
	}
	w.awaitChannels(t, 0)
	holder.release(t)
	if keys := w.keys(t); len(keys) > 0 {
		t.Errorf("the record is left: %+v", w.record(t))
	}
}

// stoppedInLine stops a process that is first in line, so that its connections look alive. It holds up
// the others for the short lease of a grant. When it goes on it finds that its grant is over, and stands
// in line again.
func stoppedInLine(t *testing.T, w watch) {
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	holder := w.member(t, long).begin(lockKey)
	holder.awaitGrant(t)
	stopped := w.child(t, long)
	waiting := w.lineUp(t, lockKey, stopped, w.child(t, long), w.child(t, long))
	places := w.record(t).line()
	stopped.pause(t)

	holder.release(t)
	released := time.Now()
	r := w.record(t)
	if r.owner() != places[0] || !slices.Equal(r.line(), places[1:]) {
		t.Fatalf("after the release the key is not the first one's: %+v", r)
	}
	if r.ttl > grantLease+5*time.Second {
		t.Errorf("a grant that nobody has extended stays for %v", r.ttl)
	}
	second := waiting[1].awaitGrant(t)
	if took := time.Since(released); took > grantLease+slack {
		t.Errorf("a stopped process held up the others for %v", took)
	}
	stopped.resume(t)
	w.awaitLine(t, 2) // the third, and the first again
	waiting[0].wantWaiting(t)
	waiting[1].release(t)
	third := waiting[2].awaitGrant(t)
	waiting[0].wantWaiting(t)
	waiting[2].release(t)
	last := waiting[0].awaitGrant(t)
	if second >= third || third >= last {
		t.Errorf("the fences are %d, %d, %d", second, third, last)
	}
	waiting[0].release(t)
	w.awaitFree(t)
}

// deadHolder kills the holder. Those in line get the key when its lease is over, one after the other.
func deadHolder(t *testing.T, w watch) {
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	dead := w.child(t, short)
	last := begin(t, dead, lockKey)
	waiting := w.lineUp(t, lockKey, w.child(t, short), w.child(t, short), w.child(t, short))
	dead.kill()
	killed := time.Now()
	for i, a := range waiting {
		fence := a.awaitGrant(t)
		if fence <= last {
			t.Errorf("fence %d after fence %d", fence, last)
		}
		if took := time.Since(killed); i == 0 && took > short+slack {
			t.Errorf("the first in line got the key %v after its holder's death", took)
		}
		for _, behind := range waiting[i+1:] {
			behind.wantWaiting(t)
		}
		last = fence
		a.release(t)
	}
	w.awaitFree(t)
}

// begin returns the fence of a new attempt that gets the key.
func begin(t *testing.T, p process, r request) uint64 {
	t.Helper()
	return p.begin(r).awaitGrant(t)
}

// stoppedHolder stops the holder for longer than its lease. The next one runs, and the holder finds that
// its lease is lost.
func stoppedHolder(t *testing.T, w watch) {
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	stopped := w.child(t, short)
	late := stopped.begin(lockKey)
	before := late.awaitGrant(t)
	next := w.lineUp(t, lockKey, w.child(t, short))[0]
	stopped.pause(t)
	if fence := next.awaitGrant(t); fence <= before {
		t.Errorf("fence %d after fence %d", fence, before)
	}
	stopped.resume(t)
	late.awaitEnd(t, "lost")
	next.release(t)
	w.awaitFree(t)
}

// leavingTheLine has those at every place of a line give up, by time and by hanging up. Nothing of them
// stays, and the others keep their order.
func leavingTheLine(t *testing.T, w watch) {
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	impatient := lockKey
	impatient.Wait = time.Second
	holder := w.member(t, long).begin(lockKey)
	holder.awaitGrant(t)
	var waiting []*attempt
	for range 3 {
		waiting = append(waiting, w.lineUp(t, lockKey, w.child(t, long))...)
	}
	places := w.record(t).line()
	late := w.member(t, long).begin(impatient)
	late.awaitEnd(t, "conflict")
	waiting[1].leave()
	waiting[1].awaitEnd(t, "conflict")
	redistest.Eventually(t, patience, func() bool {
		return slices.Equal(w.record(t).line(), []string{places[0], places[2]})
	}, "those that gave up are still in the line")
	holder.release(t)
	waiting[0].awaitGrant(t)
	waiting[2].wantWaiting(t)
	waiting[2].leave()
	waiting[2].awaitEnd(t, "conflict")
	w.awaitLine(t, 0)
	waiting[0].release(t)
	if keys := w.keys(t); len(keys) > 0 {
		t.Errorf("the record is left: %+v", w.record(t))
	}
}

// neverBarge has requests that do not wait come all the time while others stand in line: none of them
// gets in between.
func neverBarge(t *testing.T, w watch) {
	lockKey := request{Kind: lock, Key: "key", Wait: wait}
	holder := w.member(t, long).begin(lockKey)
	holder.awaitGrant(t)
	waiting := w.lineUp(t, lockKey, w.child(t, long), w.child(t, long), w.child(t, long))
	impatient := w.member(t, long)
	barge := func() {
		for range 5 {
			impatient.begin(request{Kind: lock, Key: "key"}).awaitEnd(t, "conflict")
		}
	}
	barge()
	holder.finish("value") // and at the same time
	barge()
	holder.awaitEnd(t, "done")
	for _, a := range waiting {
		a.awaitGrant(t)
		barge()
		a.finish("value")
		if a != waiting[2] {
			barge()
		}
		a.awaitEnd(t, "done")
	}
	w.awaitFree(t)
}
