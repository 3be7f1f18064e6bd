package keyfuncs_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

func withTwoHeaders(a, b []string) request {
	r := withHeader("A", a...)
	for _, line := range b {
		r.header.Add("B", line)
	}
	return r
}

func TestHeaders(t *testing.T) {
	headers := keyfuncs.Headers("A", "b")
	wantApart(t, headers,
		withTwoHeaders([]string{"x"}, []string{"y"}),
		withTwoHeaders([]string{"y"}, []string{"x"}),
		withTwoHeaders([]string{"x", "y"}, []string{"y"}),
		withTwoHeaders([]string{"x"}, []string{"y", "y"}),
		withTwoHeaders([]string{"y", "x"}, []string{"y"}),
		withTwoHeaders([]string{"x, y"}, []string{"y"}),
		withTwoHeaders([]string{"x", "yz"}, []string{"y"}),
		withTwoHeaders([]string{"xy", "z"}, []string{"y"}),
		withTwoHeaders([]string{"xy"}, []string{"z"}),
		withTwoHeaders([]string{"x"}, []string{"yz"}),
		withTwoHeaders([]string{"", "x"}, []string{"y"}),
	)
	wantSame(t, headers,
		withTwoHeaders([]string{"x"}, []string{"y"}),
		request{header: map[string][]string{"A": {"x"}, "B": {"y"}, "C": {"z"}}},
	)
}

func TestHeadersThatAreMissing(t *testing.T) {
	const problem = "header b is missing or empty, and has to tell a repeat from another request"
	for _, lines := range [][]string{nil, {""}, {" \t", ""}} {
		wantRefused(t, keyfuncs.Headers("A", "b"), withTwoHeaders([]string{"x"}, lines), problem)
	}
}

// The body is not looked at, so that it may be of any size.
func TestHeadersReadsNoBody(t *testing.T) {
	r := withHeader("A", "x")
	r.err = dedupe.ErrPayloadTooLarge
	covers(t, keyfuncs.Headers("A"), r)
	covers(t, keyfuncs.OptionalHeaders("A"), r)
}

func TestOptionalHeaders(t *testing.T) {
	wantApart(t, keyfuncs.OptionalHeaders("A", "B"),
		withTwoHeaders(nil, nil),
		withTwoHeaders([]string{""}, nil),
		withTwoHeaders(nil, []string{""}),
		withTwoHeaders([]string{"", ""}, nil),
		withTwoHeaders([]string{"x"}, nil),
		withTwoHeaders(nil, []string{"x"}),
		withTwoHeaders([]string{"x", "x"}, nil),
		withTwoHeaders([]string{"x"}, []string{"x"}),
	)
}

func TestHeadersPanics(t *testing.T) {
	wantPanic(t, "keyfuncs: Headers(): give at least one", func() { keyfuncs.Headers() })
	wantPanic(t, `keyfuncs: Headers("a b"): not a header name`, func() { keyfuncs.Headers("A", "a b") })
	wantPanic(t, `keyfuncs: OptionalHeaders(""): not a header name`, func() { keyfuncs.OptionalHeaders("") })
}

func TestHeadersKeepsItsNames(t *testing.T) {
	names := []string{"A"}
	headers := keyfuncs.Headers(names...)
	names[0] = "B"
	covers(t, headers, withHeader("A", "x"))
}

// An upload whose client has hashed the file is recognized by that, whatever its size and boundary.
func ExampleHeaders() {
	fingerprint := keyfuncs.Headers("X-File-Digest")

	first, _ := fingerprint(withHeader("X-File-Digest", "sha-256=:d435Qo+nKZ+gLcUHn7GQtQ72hiBVAgqoLsZnZPiTGPk=:"))
	repeat, _ := fingerprint(withHeader("X-File-Digest", "sha-256=:d435Qo+nKZ+gLcUHn7GQtQ72hiBVAgqoLsZnZPiTGPk=:"))
	fmt.Println(bytes.Equal(first, repeat))

	_, err := fingerprint(request{})
	fmt.Println(err)
	// Output:
	// true
	// header X-File-Digest is missing or empty, and has to tell a repeat from another request
}
