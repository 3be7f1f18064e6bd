package keyfuncs_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/keyfuncs"
)

// covers returns what a fingerprint covers of a request, which must be readable.
func covers(t *testing.T, fingerprint keyfuncs.Fingerprint, r dedupe.Request) string {
	t.Helper()
	covered, err := fingerprint(r)
	if err != nil || len(covered) != 32 {
		t.Fatalf("got %x, %v", covered, err)
	}
	return string(covered)
}

// wantApart checks that no two requests have one fingerprint, and that each has one only.
func wantApart(t *testing.T, fingerprint keyfuncs.Fingerprint, requests ...request) {
	t.Helper()
	seen := map[string]int{}
	for i, r := range requests {
		covered := covers(t, fingerprint, r)
		if other, ok := seen[covered]; ok {
			t.Errorf("requests %d and %d have one fingerprint: %.300q and %.300q", other, i, requests[other].payload, r.payload)
		}
		seen[covered] = i
		if covers(t, fingerprint, r) != covered {
			t.Errorf("request %d has two fingerprints", i)
		}
	}
}

// wantSame checks that all requests have one fingerprint.
func wantSame(t *testing.T, fingerprint keyfuncs.Fingerprint, requests ...request) {
	t.Helper()
	for i, r := range requests[1:] {
		if covers(t, fingerprint, r) != covers(t, fingerprint, requests[0]) {
			t.Errorf("requests 0 and %d have two fingerprints: %.300q and %.300q", i+1, requests[0].payload, r.payload)
		}
	}
}

// wantRefused checks the error for a request that cannot be told from others.
func wantRefused(t *testing.T, fingerprint keyfuncs.Fingerprint, r dedupe.Request, text string) {
	t.Helper()
	covered, err := fingerprint(r)
	if covered != nil || !errors.Is(err, dedupe.ErrKeyInvalid) || err.Error() != text {
		t.Errorf("got %x, %v; want %q", covered, err, text)
	}
}

func withPayload(contentType, body string) request {
	return request{payload: dedupe.Payload{Target: "POST /", ContentType: contentType, Body: []byte(body)}}
}

// part is a fingerprint with the same result for all requests.
func part(covered string, err error) keyfuncs.Fingerprint {
	return func(dedupe.Request) ([]byte, error) { return []byte(covered), err }
}

func TestAll(t *testing.T) {
	seen := map[string][]string{}
	for _, parts := range [][]string{{""}, {"", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"ab", ""}, {"", "ab"}, {"a", "b", ""}} {
		fns := make([]keyfuncs.Fingerprint, len(parts))
		for i, covered := range parts {
			fns[i] = part(covered, nil)
		}
		covered := covers(t, keyfuncs.All(fns...), request{})
		if other, ok := seen[covered]; ok {
			t.Errorf("%q and %q have one fingerprint", other, parts)
		}
		seen[covered] = parts
	}
}

func TestAllPassesErrors(t *testing.T) {
	fault := errors.New("fault")
	untouchable := func(dedupe.Request) ([]byte, error) {
		t.Error("fingerprint asked")
		return nil, nil
	}
	for _, fingerprint := range []keyfuncs.Fingerprint{
		keyfuncs.All(part("a", fault), untouchable),
		keyfuncs.All(part("a", nil), part("", fault), untouchable),
	} {
		if covered, err := fingerprint(request{}); covered != nil || err != fault {
			t.Errorf("got %x, %v", covered, err)
		}
	}
}

func TestAllPanics(t *testing.T) {
	wantPanic(t, "keyfuncs: All(): give at least one", func() { keyfuncs.All() })
	wantPanic(t, "keyfuncs: All: fingerprint 2 of 2 is nil", func() { keyfuncs.All(keyfuncs.Body, nil) })
}

func TestAllKeepsItsFunctions(t *testing.T) {
	fns := []keyfuncs.Fingerprint{part("a", nil)}
	all := keyfuncs.All(fns...)
	fns[0] = nil
	covers(t, all, request{})
}

func TestBody(t *testing.T) {
	wantApart(t, keyfuncs.Body, withPayload("text/plain", "a"), withPayload("text/plain", "a "), withPayload("text/plain", ""))
	wantSame(t, keyfuncs.Body, withPayload("application/json", "{}"), withPayload("application/json; charset=utf-8", "{}"), withPayload("", "{}"))
}

func TestContentType(t *testing.T) {
	wantApart(t, keyfuncs.ContentType, withPayload("", ""), withPayload("text/plain", ""), withPayload("text/plain;charset=utf-8", ""))
	wantSame(t, keyfuncs.ContentType, withPayload("text/plain", "a"), withPayload("text/plain", "b"))
}

// A payload over the limit is told as such, whatever covers it.
func TestFingerprintsPassErrors(t *testing.T) {
	for name, fingerprint := range map[string]keyfuncs.Fingerprint{
		"Body":           keyfuncs.Body,
		"ContentType":    keyfuncs.ContentType,
		"Multipart":      keyfuncs.Multipart,
		"Fields":         keyfuncs.Fields("a"),
		"OptionalFields": keyfuncs.OptionalFields("a"),
	} {
		if covered, err := fingerprint(request{err: dedupe.ErrPayloadTooLarge}); covered != nil || err != dedupe.ErrPayloadTooLarge {
			t.Errorf("%s: got %x, %v", name, covered, err)
		}
	}
}

// Every fingerprint is what the option takes, as it is.
func TestFingerprintsAreOptions(t *testing.T) {
	for _, option := range []dedupe.Option{
		dedupe.WithFingerprint(keyfuncs.Body),
		dedupe.WithFingerprint(keyfuncs.ContentType),
		dedupe.WithFingerprint(keyfuncs.Multipart),
		dedupe.WithFingerprint(keyfuncs.Fields("a")),
		dedupe.WithFingerprint(keyfuncs.All(keyfuncs.Headers("a"), keyfuncs.Multipart)),
	} {
		if _, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, keyfuncs.Const("k"), option); err != nil {
			t.Error(err)
		}
	}
}

// FuzzAll takes the parts of two fingerprints apart wherever two texts let it.
func FuzzAll(f *testing.F) {
	f.Add([]byte("ab"), []byte("a"), uint(1))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x01a"), []byte("a"), uint(8))
	f.Fuzz(func(t *testing.T, a, b []byte, at uint) {
		all := func(parts ...[]byte) string {
			fns := make([]keyfuncs.Fingerprint, len(parts))
			for i, covered := range parts {
				fns[i] = part(string(covered), nil)
			}
			return covers(t, keyfuncs.All(fns...), request{})
		}
		at %= uint(len(a) + 1)
		whole, cut, turned := all(a, b), all(a[:at], append(bytes.Clone(a[at:]), b...)), all(b, a)
		if (whole == cut) != (at == uint(len(a))) || (whole == turned) != bytes.Equal(a, b) || whole == all(a, b, nil) {
			t.Errorf("%q and %q, cut at %d", a, b, at)
		}
	})
}

func ExampleAll() {
	fingerprint := keyfuncs.All(keyfuncs.OptionalHeaders("Api-Version"), keyfuncs.Fields("amount", "to.iban"))

	first := withHeader("Api-Version", "2")
	first.fields = map[string]string{"amount": "200", "to.iban": "DE02", "sent": "12:00:00"}
	repeat := withHeader("Api-Version", "2")
	repeat.fields = map[string]string{"amount": "200", "to.iban": "DE02", "sent": "12:00:07"}
	other := withHeader("Api-Version", "1")
	other.fields = first.fields

	a, _ := fingerprint(first)
	b, _ := fingerprint(repeat)
	c, _ := fingerprint(other)
	fmt.Println(bytes.Equal(a, b), bytes.Equal(a, c))
	// Output: true false
}
