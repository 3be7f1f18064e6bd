package atrest_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/atrest"
)

// none is a process without a codec. An adapter reads its own answers only: those that begin with
// the byte that this adapter begins with.
type none struct{}

func (none) Encode(_ dedupe.Digest, _ uint64, answer []byte) ([]byte, error) { return answer, nil }

func (none) Decode(_ dedupe.Digest, stored []byte) ([]byte, error) {
	if stored[0] != answer[0] {
		return nil, dedupe.ErrRecordUnreadable
	}
	return stored, nil
}

// The steps that the package comment and Compress name refuse no answer. While one rolls out, processes
// of two steps share a store that has answers of both, and of those before unless the retention had to
// pass first.
func TestRollouts(t *testing.T) {
	t.Parallel()
	oldKey, newKey := []atrest.Key{key("a")}, []atrest.Key{key("b")}
	both := []atrest.Key{key("a"), key("b")}
	until := atrest.WithUnsealed(time.Now().Add(time.Hour))
	type step struct {
		name          string
		codec         dedupe.Codec
		afterwardOnly bool // deployed only when the retention has passed since the step before
	}
	for name, steps := range map[string][]step{
		"sealing on": {
			{"no codec", none{}, false},
			{"without sealing", seal(t, oldKey, atrest.WithoutSealing()), false},
			{"accepting unsealed", seal(t, oldKey, until), false},
			{"refusing unsealed", seal(t, oldKey), true},
		},
		"sealing off": {
			{"refusing unsealed", seal(t, oldKey), false},
			{"accepting unsealed", seal(t, oldKey, until), false},
			{"without sealing", seal(t, oldKey, atrest.WithoutSealing()), false},
			{"no codec", none{}, true},
		},
		"rotation": {
			{"old key", seal(t, oldKey), false},
			{"new key opens", seal(t, both), false},
			{"new key seals", seal(t, []atrest.Key{key("b"), key("a")}), false},
			{"new key only", seal(t, newKey), true},
		},
		"compression on": {
			{"no codec", none{}, false},
			{"reading only", compress(t, math.MaxInt), false},
			{"compressing", compress(t, 100), false},
		},
		"compression off": {
			{"compressing", compress(t, 100), false},
			{"reading only", compress(t, math.MaxInt), false},
			{"no codec", none{}, true},
		},
		"both on": {
			{"no codec", none{}, false},
			{"neither yet", chain(t, compress(t, math.MaxInt), seal(t, oldKey, atrest.WithoutSealing())), false},
			{"both", chain(t, compress(t, 100), seal(t, oldKey, until)), false},
			{"for good", chain(t, compress(t, 100), seal(t, oldKey)), true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := bytes.Repeat(answer, 100)
			reads := func(reader, writer step) bool {
				got, err := reader.codec.Decode(digest, encode(t, writer.codec, text))
				if err == nil && !bytes.Equal(got, text) {
					t.Errorf("%q reads another answer than %q kept", reader.name, writer.name)
				}
				return err == nil
			}
			for i, reader := range steps {
				if !reads(reader, reader) {
					t.Errorf("%q does not read its own answers", reader.name)
				}
				if i == 0 {
					continue
				}
				before := steps[i-1]
				if !reads(before, reader) {
					t.Errorf("%q does not read what %q keeps", before.name, reader.name)
				}
				if !reader.afterwardOnly && !reads(reader, before) {
					t.Errorf("%q does not read what %q kept", reader.name, before.name)
				}
				// What was kept two steps ago, within the retention.
				if i > 1 && !reader.afterwardOnly && !reads(reader, steps[i-2]) {
					t.Errorf("%q does not read what %q kept", reader.name, steps[i-2].name)
				}
			}
			// No step can be left out: that is why they are there.
			for i := 2; i < len(steps); i++ {
				if first, last := steps[i-2], steps[i]; reads(first, last) && reads(last, first) {
					t.Errorf("between %q and %q nothing is needed", first.name, last.name)
				}
			}
		})
	}
}
