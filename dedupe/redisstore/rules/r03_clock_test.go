package rules

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// TestR3NoTimesAreSent looks at all that reaches Redis. What is not sent cannot be wrong: a process
// whose clock has stepped sends the same bytes.
func TestR3NoTimesAreSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	everyPath(t, r)
	calls := 0
	for _, args := range r.proxy.Requests() {
		if !slices.ContainsFunc([]redistest.Match{claims, extends, completes, releases}, func(m redistest.Match) bool { return m(args) }) {
			continue
		}
		calls++
		const tokenSize = len(dedupe.Token{})
		if stamp := args[4]; len(stamp) != tokenSize+8 {
			t.Errorf("the stamp has %d bytes", len(stamp))
		} else if number := binary.BigEndian.Uint64([]byte(stamp[tokenSize:])); isTime(float64(number)) {
			t.Errorf("the stamp's number %d is a time", number)
		}
		for _, arg := range args[5:] {
			if number, err := strconv.ParseFloat(arg, 64); err == nil && isTime(number) {
				t.Errorf("the argument %s is a time", arg)
			}
		}
	}
	if calls < 10 {
		t.Fatalf("the proxy saw %d calls", calls)
	}
}

// isTime reports whether number is within some years of now in a usual unit.
func isTime(number float64) bool {
	now := time.Now()
	return slices.ContainsFunc([]int64{now.Unix(), now.UnixMilli(), now.UnixMicro(), now.UnixNano()}, func(unit int64) bool {
		return math.Abs(number-float64(unit)) < float64(unit)/10
	})
}

// TestR3EqualCallsSendEqualBytes makes each call at two times. Only the stamp's number may differ.
func TestR3EqualCallsSendEqualBytes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := newOwner(r.store)
	for range 2 {
		_, err := r.store.Claim(t.Context(), dedupe.Claim{Holder: o.holder, Fingerprint: dedupe.Fingerprint{1}, Lease: long, Lapse: long})
		succeed(t, err)
		succeed(t, o.extend(t.Context(), long))
		succeed(t, o.release(t.Context()))
	}
	for name, script := range map[string]redistest.Match{"claim": claims, "extend": extends, "release": releases} {
		var sent [][]string
		for _, args := range r.proxy.Requests() {
			if script(args) {
				sent = append(sent, append([]string{args[4][:len(dedupe.Token{})]}, args[5:]...))
			}
		}
		if len(sent) != 2 || !slices.Equal(sent[0], sent[1]) {
			t.Errorf("%s was sent as %q", name, sent)
		}
	}
}

// TestR3TheServersClockDecides has a lease end by the server's clock alone: the record says that it
// has ended while by the owner's clock it has a minute left.
func TestR3TheServersClockDecides(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := newOwner(r.store)
	fence := o.grant(t, long)
	r.endLease(t, o.key())

	match(t, o.extend(t.Context(), long), dedupe.ErrLeaseLost)
	match(t, o.complete(t.Context(), nil, long), dedupe.ErrLeaseLost)
	if next := o.rival().grant(t, long); next <= fence {
		t.Fatalf("the fence went from %d to %d", fence, next)
	}
}
