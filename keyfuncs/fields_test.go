package keyfuncs_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

func withFields(pairs ...string) request {
	r := request{fields: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		r.fields[pairs[i]] = pairs[i+1]
	}
	return r
}

func TestFields(t *testing.T) {
	fields := keyfuncs.Fields("a", "b.c")
	wantApart(t, fields,
		withFields("a", "xy", "b.c", "z"),
		withFields("a", "x", "b.c", "yz"),
		withFields("a", "z", "b.c", "xy"),
		withFields("a", "xy", "b.c", "Z"),
	)
	other := withFields("a", "x", "b.c", "y", "d", "z")
	other.payload = dedupe.Payload{ContentType: "application/json", Body: []byte("x")}
	wantSame(t, fields, withFields("a", "x", "b.c", "y"), other)
}

// What is needed has to be there: without it two requests would be one.
func TestFieldsThatAreMissing(t *testing.T) {
	const problem = " is missing or empty, and has to tell a repeat from another request"
	fields := keyfuncs.Fields("a", "b.c")
	wantRefused(t, fields, withFields(), "field a"+problem)
	wantRefused(t, fields, withFields("b.c", "x"), "field a"+problem)
	wantRefused(t, fields, withFields("a", "x"), "field b.c"+problem)
	wantRefused(t, fields, withFields("a", "x", "b.c", ""), "field b.c"+problem)
}

func TestOptionalFields(t *testing.T) {
	fields := keyfuncs.OptionalFields("a", "b.c")
	wantApart(t, fields,
		withFields(),
		withFields("a", "x"),
		withFields("b.c", "x"),
		withFields("a", "x", "b.c", "x"),
		withFields("a", "xx"),
	)
	wantSame(t, fields, withFields("a", "x"), withFields("a", "x", "b.c", ""))
}

func TestFieldsPanics(t *testing.T) {
	wantPanic(t, "keyfuncs: Fields(): give at least one path", func() { keyfuncs.Fields() })
	wantPanic(t, "keyfuncs: OptionalFields(): give at least one path", func() { keyfuncs.OptionalFields() })
	wantPanic(t, `keyfuncs: Field("a..b")`, func() { keyfuncs.Fields("a", "a..b") })
	wantPanic(t, `keyfuncs: Field("")`, func() { keyfuncs.OptionalFields("") })
}

func TestFieldsKeepsItsPaths(t *testing.T) {
	paths := []string{"a"}
	fields := keyfuncs.Fields(paths...)
	paths[0] = "b"
	covers(t, fields, withFields("a", "x"))
	wantRefused(t, fields, withFields("b", "x"), "field a is missing or empty, and has to tell a repeat from another request")
}

// FuzzFields checks that two requests have one fingerprint only if all their fields are the same.
func FuzzFields(f *testing.F) {
	f.Add("x,yz", "xy,z", ",")
	f.Add("x,", "x", ",")
	f.Add(",x", "x,", ",")
	f.Add("\x00\x00\x00\x00\x00\x00\x00\x01x", "x", "\x00")
	f.Add(strings.Repeat("x", 300), strings.Repeat("x", 299)+",x", ",")
	paths := []string{"a", "b.c", "d"}
	required, optional := keyfuncs.Fields(paths...), keyfuncs.OptionalFields(paths...)
	f.Fuzz(func(t *testing.T, one, other, separator string) {
		requestOf := func(text string) (r request, complete bool) {
			r, complete = withFields(), true
			values := strings.SplitN(text, separator, len(paths))
			for i, path := range paths {
				if i < len(values) {
					r.fields[path] = values[i]
				}
				complete = complete && r.fields[path] != ""
			}
			return r, complete
		}
		a, aComplete := requestOf(one)
		b, bComplete := requestOf(other)
		same := a.fields["a"] == b.fields["a"] && a.fields["b.c"] == b.fields["b.c"] && a.fields["d"] == b.fields["d"]
		if (covers(t, optional, a) == covers(t, optional, b)) != same {
			t.Errorf("optional: %q and %q", a.fields, b.fields)
		}
		if _, err := required(a); (err == nil) != aComplete {
			t.Errorf("required: %q: %v", a.fields, err)
		}
		if aComplete && bComplete && (covers(t, required, a) == covers(t, required, b)) != same {
			t.Errorf("required: %q and %q", a.fields, b.fields)
		}
	})
}

func ExampleFields() {
	fingerprint := keyfuncs.Fields("amount", "to.iban")

	first, _ := fingerprint(withFields("amount", "200", "to.iban", "DE02", "sent", "12:00:00"))
	repeat, _ := fingerprint(withFields("amount", "200", "to.iban", "DE02", "sent", "12:00:07"))
	other, _ := fingerprint(withFields("amount", "300", "to.iban", "DE02", "sent", "12:00:09"))
	fmt.Println(bytes.Equal(first, repeat), bytes.Equal(first, other))

	_, err := fingerprint(withFields("amount", "200"))
	fmt.Println(err)
	// Output:
	// true false
	// field to.iban is missing or empty, and has to tell a repeat from another request
}

// A memo is no part of every transfer, and yet a transfer with another memo is another one.
func ExampleOptionalFields() {
	fingerprint := keyfuncs.All(keyfuncs.Fields("amount"), keyfuncs.OptionalFields("memo"))

	bare, _ := fingerprint(withFields("amount", "200"))
	empty, _ := fingerprint(withFields("amount", "200", "memo", ""))
	rent, _ := fingerprint(withFields("amount", "200", "memo", "rent"))
	fmt.Println(bytes.Equal(bare, empty), bytes.Equal(bare, rent))
	// Output: true false
}
