package storetest

import (
	"errors"

	"github.com/interlock-go/interlock/dedupe"
)

// unreadableCases are about records that [WithCorrupt] has written: every call refuses them, tells
// that it is the record and not the store, and leaves them as they are.
var unreadableCases = func() (cases []testCase) {
	for _, kind := range []Corruption{Foreign, Damaged, Newer} {
		cases = append(cases,
			testCase{kind.String() + "IsNotClaimed", func(t *trial) {
				t.unreadable(kind, func(c dedupe.Claim) error {
					c.Token = newToken()
					_, err := t.store.Claim(t.Context(), c)
					return err
				})
			}},
			testCase{kind.String() + "IsNotClaimedAgain", func(t *trial) {
				t.unreadable(kind, func(c dedupe.Claim) error {
					_, err := t.store.Claim(t.Context(), c)
					return err
				})
			}},
			testCase{kind.String() + "IsNotExtended", func(t *trial) {
				t.unreadable(kind, func(c dedupe.Claim) error {
					return t.store.Extend(t.Context(), c.Holder, short)
				})
			}},
			testCase{kind.String() + "IsNotCompleted", func(t *trial) {
				t.unreadable(kind, func(c dedupe.Claim) error {
					return t.store.Complete(t.Context(), c.Holder, []byte("answer"), short)
				})
			}},
			testCase{kind.String() + "IsNotReleased", func(t *trial) {
				t.unreadable(kind, func(c dedupe.Claim) error {
					return t.store.Release(t.Context(), c.Holder)
				})
			}},
		)
	}
	return cases
}()

// unreadable puts an unreadable record in the place of one that is held, and of none, and makes call
// with the claim of the one that held it.
func (t *trial) unreadable(kind Corruption, call func(c dedupe.Claim) error) {
	t.Helper()
	if t.corrupt == nil {
		t.Skip("the store was opened without storetest.WithCorrupt")
	}
	for _, before := range []string{"a record", "nothing"} {
		t.digest = t.newDigest()
		c := t.newClaim(long)
		if before == "a record" {
			t.grant(c)
		}
		t.succeed("writing the record", t.corrupt(t.Context(), t.digest, kind))
		t.refused(before, call(c))
		t.outlive(short)
		_, err := t.store.Claim(t.Context(), t.newClaim(long))
		t.refused("the call: the record was changed", err)
	}
}

func (t *trial) refused(after string, err error) {
	t.Helper()
	switch {
	case !errors.Is(err, dedupe.ErrRecordUnreadable):
		t.Fatalf("after %s: got %v, want ErrRecordUnreadable", after, err)
	case errors.Is(err, dedupe.ErrStoreUnavailable), errors.Is(err, dedupe.ErrLeaseLost):
		t.Fatalf("after %s: an unreadable record is told as something else too: %v", after, err)
	}
}
