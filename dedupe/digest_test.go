package dedupe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
)

func TestDigestText(t *testing.T) {
	d := dedupe.Digest{0: 0xfb, 31: 0xff}
	if got, want := d.String(), "-wAA"+strings.Repeat("A", 36)+"AP8"; got != want {
		t.Errorf("got %q, want unpadded URL-safe base64, %q", got, want)
	}
}

func TestTokenText(t *testing.T) {
	token := dedupe.Token{0: 0x0a, 15: 0xff}
	if got, want := token.String(), "0a"+strings.Repeat("00", 14)+"ff"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// claimOf returns what the guard asked the store for.
func claimOf(t *testing.T, guard build, r *request, options ...dedupe.Option) dedupe.Claim {
	t.Helper()
	spy := newSpy()
	r.proceeded(t, r.through(guard(t, spy, options...)))
	return spy.seen(claim)[0].claim
}

// Each of kind, domain, caller, operation and key makes a record of its own, wherever the border
// between two of them is.
func TestDigestsOfDifferentRequestsDiffer(t *testing.T) {
	used := map[dedupe.Digest]string{}
	unique := func(c dedupe.Claim, of string) {
		t.Helper()
		if other, taken := used[c.Digest]; taken {
			t.Errorf("%s has the digest of %s", of, other)
		}
		used[c.Digest] = of
	}
	for _, parts := range [][3]string{
		{"a", "b", "c"},
		{"ab", "c", "d"},
		{"a", "bc", "d"},
		{"a", "b", "cd"},
		{"b", "a", "c"},
		{"a", "b", "c\x00"},
		{"\x01a", "b", "c"},
		{"a\x01b", "c", "d"},
		{"a", "b\x01c", "d"},
	} {
		r := ask(parts[2])
		r.params["caller"], r.operation = parts[0], parts[1]
		unique(claimOf(t, once, r), fmt.Sprintf("caller %q, operation %q, key %q", parts[0], parts[1], parts[2]))
	}
	for _, parts := range [][2]string{{"account", "7"}, {"account7", "7"}, {"accoun", "t7"}, {"once", "c"}} {
		domain := func(tb testing.TB, store dedupe.Store, options ...dedupe.Option) *dedupe.Guard {
			tb.Helper()
			return inDomain(tb, store, parts[0], options...)
		}
		unique(claimOf(t, domain, ask(parts[1])), fmt.Sprintf("domain %q, key %q", parts[0], parts[1]))
	}
}

func TestSerializeIgnoresCallerAndOperation(t *testing.T) {
	other := ask("7")
	other.params["caller"], other.operation = "bob", "DELETE /accounts/{id}"
	if claimOf(t, serialize, ask("7")).Digest != claimOf(t, serialize, other).Digest {
		t.Error("routes and callers do not exclude each other on one resource")
	}
}

func TestWithOperation(t *testing.T) {
	other := ask("7")
	other.operation = "PUT /transfers/{id}"
	named := dedupe.WithOperation("transfer")
	if claimOf(t, once, ask("7"), named).Digest != claimOf(t, once, other, named).Digest {
		t.Error("a key does not count over two routes of one WithOperation")
	}
	if claimOf(t, once, ask("7"), named).Digest == claimOf(t, once, ask("7")).Digest {
		t.Error("WithOperation does not replace the request's operation")
	}
}

func TestRequestsWithDifferentPayloadsHaveDifferentFingerprints(t *testing.T) {
	used := map[dedupe.Fingerprint]dedupe.Payload{{}: {}}
	for _, p := range []dedupe.Payload{
		{},
		{Target: "ab", ContentType: "c", Body: []byte("d")},
		{Target: "a", ContentType: "bc", Body: []byte("d")},
		{Target: "a", ContentType: "b", Body: []byte("cd")},
		{Target: "abcd"},
		{ContentType: "abcd"},
		{Body: []byte("abcd")},
		{Body: []byte("abce")},
	} {
		r := ask("7")
		r.payload = p
		fingerprint := claimOf(t, once, r).Fingerprint
		if other, taken := used[fingerprint]; taken {
			t.Errorf("%q has the fingerprint of %q", p, other)
		}
		used[fingerprint] = p
	}
}

func TestWithFingerprint(t *testing.T) {
	byAmount := dedupe.WithFingerprint(func(r dedupe.Request) ([]byte, error) {
		amount, err := r.Field("amount")
		return []byte(amount), err
	})
	with := func(amount, note string) *request {
		r := ask("7")
		r.params["amount"], r.payload.Body = amount, []byte(note)
		return r
	}
	first := claimOf(t, once, with("500", "rent"), byAmount).Fingerprint
	if first != claimOf(t, once, with("500", "Rent"), byAmount).Fingerprint {
		t.Error("what is not in the fingerprint changes it")
	}
	if first == claimOf(t, once, with("700", "rent"), byAmount).Fingerprint {
		t.Error("what is in the fingerprint does not change it")
	}
	if claimOf(t, once, with("", ""), byAmount).Fingerprint == (dedupe.Fingerprint{}) {
		t.Error("empty bytes give the fingerprint that matches every other")
	}

	r := with("500", "rent")
	r.problems["amount"] = &dedupe.KeyError{Source: "field amount", Problem: "is a list"}
	refused(t, r.through(once(t, newSpy(), byAmount)), dedupe.KeyInvalid)
}

// A resource does not care what is done to it.
func TestSerializeAndJobsHaveNoPayload(t *testing.T) {
	r := ask("7")
	r.tooLarge = true
	if fingerprint := claimOf(t, serialize, r).Fingerprint; fingerprint != (dedupe.Fingerprint{}) {
		t.Errorf("a Serialize has the fingerprint %x", fingerprint)
	}
}

func TestTokensAreNotUsedTwice(t *testing.T) {
	spy := newSpy()
	guard := serialize(t, spy)
	used := map[dedupe.Token]bool{{}: true}
	for range 100 {
		r := ask("7")
		r.proceeded(t, r.through(guard))
	}
	for _, v := range spy.seen(claim) {
		if used[v.holder.Token] {
			t.Fatalf("the token %v came twice", v.holder.Token)
		}
		used[v.holder.Token] = true
	}
}
