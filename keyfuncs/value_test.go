package keyfuncs_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyfuncs"
)

type (
	userID  string
	orderID int64
	masked  string
	level   int
	point   struct{ x, y int }
	listed  []string
	userKey struct{}
	// boxed is comparable as a type, though not with a slice inside.
	boxed struct{ any }
)

func (masked) String() string { return "***" }
func (level) String() string  { return "level" }
func (p point) String() string {
	return fmt.Sprintf("%d/%d", p.x, p.y)
}
func (l listed) String() string { return strings.Join(l, "+") }

func TestValue(t *testing.T) {
	text := "text"
	for _, test := range []struct {
		name  string
		value any
		key   string
		fails bool
	}{
		{name: "nil", value: nil},
		{name: "string", value: "anna", key: "anna"},
		{name: "empty string", value: ""},
		{name: "named string", value: userID("anna"), key: "anna"},
		{name: "string that masks itself", value: masked("anna"), key: "anna"},
		{name: "int", value: -7, key: "-7"},
		{name: "zero", value: 0, key: "0"},
		{name: "int8", value: int8(math.MinInt8), key: "-128"},
		{name: "int64", value: int64(math.MinInt64), key: "-9223372036854775808"},
		{name: "uint8", value: uint8(255), key: "255"},
		{name: "uint64", value: uint64(math.MaxUint64), key: "18446744073709551615"},
		{name: "named int", value: orderID(7), key: "7"},
		{name: "int with a name", value: level(3), key: "3"},
		{name: "true", value: true, key: "true"},
		{name: "false", value: false, key: "false"},
		{name: "whole float", value: 7.0, key: "7"},
		{name: "negative zero", value: math.Copysign(0, -1), key: "0"},
		{name: "largest exact float", value: float64(1<<53 - 1), key: "9007199254740991"},
		{name: "smallest exact float", value: -float64(1<<53 - 1), key: "-9007199254740991"},
		{name: "inexact float", value: float64(1 << 53), fails: true},
		{name: "inexact negative float", value: -float64(1 << 53), fails: true},
		{name: "fraction", value: 7.5, fails: true},
		{name: "infinity", value: math.Inf(1), fails: true},
		{name: "not a number", value: math.NaN(), fails: true},
		{name: "whole float32", value: float32(7), key: "7"},
		{name: "inexact float32", value: float32(1 << 24), fails: true},
		{name: "Stringer", value: point{1, 2}, key: "1/2"},
		{name: "pointer to a Stringer", value: &point{1, 2}, key: "1/2"},
		{name: "nil pointer to a Stringer", value: (*point)(nil)},
		{name: "nil pointer that has String", value: (*big.Int)(nil)},
		{name: "list that is a Stringer", value: listed{"a", "b"}, key: "a+b"},
		{name: "address", value: netip.MustParseAddr("192.0.2.1"), key: "192.0.2.1"},
		{name: "big integer", value: big.NewInt(7), key: "7"},
		{name: "complex", value: 1i, fails: true},
		{name: "uintptr", value: uintptr(1), fails: true},
		{name: "bytes", value: []byte("text"), fails: true},
		{name: "pointer to string", value: &text, fails: true},
		{name: "nil pointer to string", value: (*string)(nil), fails: true},
		{name: "struct", value: userKey{}, fails: true},
		{name: "map", value: map[string]string{"text": "text"}, fails: true},
		{name: "function", value: func() {}, fails: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			key, err := keyfuncs.Value(userKey{})(request{values: map[any]any{userKey{}: test.value}})
			if key != test.key || (err != nil) != test.fails {
				t.Fatalf("got %q, %v; want %q, error %t", key, err, test.key, test.fails)
			}
			if err == nil {
				return
			}
			want := fmt.Sprintf("keyfuncs: Value(keyfuncs_test.userKey): a %T of this value cannot serve as a key", test.value)
			if err.Error() != want {
				t.Errorf("error = %q, want %q", err, want)
			}
		})
	}
}

func TestValueNamesStringKeys(t *testing.T) {
	_, err := keyfuncs.Value("user")(request{values: map[any]any{"user": []int{1}}})
	const want = `keyfuncs: Value("user"): a []int of this value cannot serve as a key`
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestValuePanics(t *testing.T) {
	for _, key := range []any{nil, "", []string{"user"}, map[string]int{}, func() {}, boxed{[]int{1}}} {
		wantPanic(t, "keyfuncs: Value(", func() { keyfuncs.Value(key) })
	}
	for _, key := range []any{"user", userKey{}, &userKey{}, 0, boxed{1}} {
		keyfuncs.Value(key)
	}
}

func ExampleValue() {
	ctx := context.WithValue(context.Background(), userKey{}, int64(7)) // as the authentication does
	r := request{ctx: ctx}

	fmt.Println(keyfuncs.Value(userKey{})(r))
	fmt.Println(keyfuncs.Value("user")(r))
	// Output:
	// 7 <nil>
	//  <nil>
}
