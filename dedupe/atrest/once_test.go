package atrest_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/atrest"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

// open is a store that somebody else reads and writes.
type open struct {
	dedupe.Store
	kept   []byte
	change func([]byte) []byte
}

func (o *open) Complete(ctx context.Context, h dedupe.Holder, answer []byte, retention time.Duration) error {
	o.kept = answer
	return o.Store.Complete(ctx, h, answer, retention)
}

func (o *open) Claim(ctx context.Context, c dedupe.Claim) (dedupe.Claimed, error) {
	claimed, err := o.Store.Claim(ctx, c)
	if o.change != nil && claimed.Answer != nil {
		claimed.Answer = o.change(claimed.Answer)
	}
	return claimed, err
}

// Under a guard: the store sees nothing, a repeat gets the answer, and one whose record was touched is
// refused without running.
func TestUnderOnce(t *testing.T) {
	t.Parallel()
	store := &open{Store: memstore.New()}
	codec := chain(t, compress(t, 100), seal(t, []atrest.Key{key("a")}))
	guard, err := dedupe.Once(store, anyone, nil, dedupe.WithCodec(codec))
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	fetch := func(name string) (string, error) {
		return dedupe.Fetch(t.Context(), guard, name, func(context.Context) (string, error) {
			runs++
			return "the secret of " + name, nil
		})
	}
	for range 2 {
		if got, err := fetch("alice"); err != nil || got != "the secret of alice" || runs != 1 {
			t.Fatalf("got %q, %v, after %d runs", got, err, runs)
		}
	}
	ofAlice := store.kept
	if !bytes.HasPrefix(ofAlice, []byte("\xf8seal")) || bytes.Contains(ofAlice, []byte("alice")) {
		t.Errorf("kept as %q", ofAlice)
	}
	if _, err := fetch("bob"); err != nil {
		t.Fatal(err)
	}

	for name, change := range map[string]func([]byte) []byte{
		"another record's": func([]byte) []byte { return ofAlice },
		"made up":          func([]byte) []byte { return []byte(`"the secret of mallory"`) },
		"emptied":          func([]byte) []byte { return []byte{} },
		"cut short":        func(kept []byte) []byte { return kept[:len(kept)-1] },
	} {
		store.change = change
		got, err := fetch("bob")
		if !errors.Is(err, dedupe.ErrAnswerUnavailable) || !errors.Is(err, dedupe.ErrRecordUnreadable) || got != "" || runs != 2 {
			t.Errorf("%s: got %q, %v, after %d runs", name, got, err, runs)
		}
	}
	store.change = nil
	if got, err := fetch("bob"); err != nil || got != "the secret of bob" || runs != 2 {
		t.Errorf("got %q, %v, after %d runs", got, err, runs)
	}
}

// A job keeps an empty answer, which is no tombstone.
func TestJobUnderOnce(t *testing.T) {
	t.Parallel()
	for name, codec := range map[string]dedupe.Codec{
		"compress": compress(t, 0),
		"seal":     seal(t, []atrest.Key{key("a")}),
		"idle":     seal(t, []atrest.Key{key("a")}, atrest.WithoutSealing()),
	} {
		guard, err := dedupe.Once(memstore.New(), anyone, nil, dedupe.WithCodec(codec))
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		for range 2 {
			err := guard.Run(t.Context(), "job", func(context.Context) error { runs++; return nil })
			if err != nil || runs != 1 {
				t.Errorf("%s: got %v after %d runs", name, err, runs)
			}
		}
	}
}

func anyone(dedupe.Request) (string, error) { return "anyone", nil }
