package keyfuncs_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

// fixed is a key function with the same result for all requests.
func fixed(key string, err error) dedupe.KeyFunc {
	return func(dedupe.Request) (string, error) { return key, err }
}

// untouchable is a key function that must not be asked.
func untouchable(t *testing.T) dedupe.KeyFunc {
	return func(dedupe.Request) (string, error) {
		t.Error("key function asked")
		return "", nil
	}
}

// wantPanic checks that f panics with a text that begins with prefix.
func wantPanic(t *testing.T, prefix string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text, _ := recover().(string); !strings.HasPrefix(text, prefix) {
			t.Errorf("panic = %q, want %q", text, prefix)
		}
	}()
	f()
}

func TestJoin(t *testing.T) {
	fault := errors.New("fault")
	for _, test := range []struct {
		name string
		fns  []dedupe.KeyFunc
		key  string
		err  error
	}{
		{name: "two parts", fns: []dedupe.KeyFunc{fixed("ab", nil), fixed("c", nil)}, key: "2:ab1:c"},
		{name: "one part", fns: []dedupe.KeyFunc{fixed("ab", nil)}, key: "2:ab"},
		{name: "part like a join", fns: []dedupe.KeyFunc{fixed("2:ab1:c", nil)}, key: "7:2:ab1:c"},
		{name: "first missing", fns: []dedupe.KeyFunc{fixed("", nil), untouchable(t)}},
		{name: "last missing", fns: []dedupe.KeyFunc{fixed("ab", nil), fixed("", nil)}},
		{name: "first fails", fns: []dedupe.KeyFunc{fixed("", fault), untouchable(t)}, err: fault},
		{name: "last fails", fns: []dedupe.KeyFunc{fixed("ab", nil), fixed("", fault)}, err: fault},
		{name: "key beside an error", fns: []dedupe.KeyFunc{fixed("ab", fault)}, err: fault},
	} {
		t.Run(test.name, func(t *testing.T) {
			key, err := keyfuncs.Join(test.fns...)(request{})
			if key != test.key || err != test.err {
				t.Errorf("got %q, %v; want %q, %v", key, err, test.key, test.err)
			}
		})
	}
}

func TestJoinPanics(t *testing.T) {
	wantPanic(t, "keyfuncs: Join(): give at least one", func() { keyfuncs.Join() })
	wantPanic(t, "keyfuncs: Join: key function 2 of 2 is nil", func() { keyfuncs.Join(keyfuncs.Anyone, nil) })
}

func TestJoinKeepsItsFunctions(t *testing.T) {
	fns := []dedupe.KeyFunc{fixed("a", nil)}
	join := keyfuncs.Join(fns...)
	fns[0] = nil
	if key, err := join(request{}); key != "1:a" || err != nil {
		t.Errorf("got %q, %v", key, err)
	}
}

// FuzzJoin makes a list of each text, taking separator as what divides its parts.
func FuzzJoin(f *testing.F) {
	for _, seed := range [][3]string{
		{"a,bc", "ab,c", ","},
		{"a,b", "ab", ","},
		{"a,b", "1:a1:b", ","},
		{"a,b,c", "a,b", ","},
		{"a,", "a", ","},
		{"", "a", ","},
		{"1:a", "a", ","},
		{"1,1:", "1:1", ","},
		{"\x00,\xff", "\x00\xff", ","},
		{"aXYb", "aXbY", "XY"},
		{"abc", "abc", ""},
		{strings.Repeat("k", 300) + ",a", strings.Repeat("k", 299) + ",ka", ","},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	join := func(t *testing.T, parts []string) string {
		fns := make([]dedupe.KeyFunc, len(parts))
		for i, part := range parts {
			fns[i] = fixed(part, nil)
		}
		key, err := keyfuncs.Join(fns...)(request{})
		if err != nil || (key == "") != slices.Contains(parts, "") {
			t.Fatalf("%q: got %q, %v", parts, key, err)
		}
		if key == "" {
			return ""
		}
		if again := split(t, key); !slices.Equal(again, parts) {
			t.Fatalf("%q: key %q comes apart into %q", parts, key, again)
		}
		return key
	}
	f.Fuzz(func(t *testing.T, a, b, separator string) {
		lists := [][]string{{a}, {b}, {a, b}, {b, a}, {a + b}}
		if a != "" && b != "" {
			lists = append(lists, []string{join(t, []string{a, b})}, []string{join(t, []string{a}), b})
		}
		for _, text := range []string{a, b} {
			if list := strings.Split(text, separator); len(list) > 0 {
				lists = append(lists, list)
			}
		}
		seen := map[string][]string{}
		for _, list := range lists {
			key := join(t, list)
			if other, ok := seen[key]; ok && key != "" && !slices.Equal(other, list) {
				t.Fatalf("%q and %q have the one key %q", list, other, key)
			}
			seen[key] = list
		}
	})
}

// split takes a joined key apart. That it can is why no two lists have one key.
func split(t *testing.T, key string) (parts []string) {
	for key != "" {
		digits, rest, _ := strings.Cut(key, ":")
		length, err := strconv.Atoi(digits)
		if err != nil || length > len(rest) {
			t.Fatalf("malformed %q", key)
		}
		parts = append(parts, rest[:length])
		key = rest[length:]
	}
	return parts
}

func ExampleJoin() {
	key := keyfuncs.Join(keyfuncs.Value("tenant"), keyfuncs.Param("order"))

	fmt.Println(key(request{
		values: map[any]any{"tenant": "acme"},
		params: map[string]string{"order": "7"},
	}))
	fmt.Println(key(request{
		params: map[string]string{"order": "7"},
	}))
	// Output:
	// 4:acme1:7 <nil>
	//  <nil>
}
