package keyfuncs_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

func TestFirst(t *testing.T) {
	fault := errors.New("fault")
	for _, test := range []struct {
		name string
		fns  []dedupe.KeyFunc
		key  string
		err  error
	}{
		{name: "first has one", fns: []dedupe.KeyFunc{fixed("a", nil), untouchable(t)}, key: "a"},
		{name: "second has one", fns: []dedupe.KeyFunc{fixed("", nil), fixed("b", nil)}, key: "b"},
		{name: "none has one", fns: []dedupe.KeyFunc{fixed("", nil), fixed("", nil)}},
		{name: "first fails", fns: []dedupe.KeyFunc{fixed("", fault), untouchable(t)}, err: fault},
		{name: "second fails", fns: []dedupe.KeyFunc{fixed("", nil), fixed("", fault)}, err: fault},
		{name: "key beside an error", fns: []dedupe.KeyFunc{fixed("a", fault), untouchable(t)}, err: fault},
	} {
		t.Run(test.name, func(t *testing.T) {
			key, err := keyfuncs.First(test.fns...)(request{})
			if key != test.key || err != test.err {
				t.Errorf("got %q, %v; want %q, %v", key, err, test.key, test.err)
			}
		})
	}
	wantPanic(t, "keyfuncs: First(): give at least one", func() { keyfuncs.First() })
	wantPanic(t, "keyfuncs: First: key function 1 of 1 is nil", func() { keyfuncs.First(nil) })
}

func ExampleFirst() {
	key := keyfuncs.First(keyfuncs.Header("Idempotency-Key"), keyfuncs.Header("X-Request-Id"))

	fmt.Println(key(withHeader("Idempotency-Key", `"a1"`)))
	fmt.Println(key(withHeader("X-Request-Id", "r7")))
	fmt.Println(key(request{}))
	// Output:
	// a1 <nil>
	// r7 <nil>
	//  <nil>
}

// A guest that sends "X-Device: anna" is not taken for the user anna.
func ExampleFirst_origin() {
	caller := keyfuncs.First(
		keyfuncs.Join(keyfuncs.Const("user"), keyfuncs.Value("user")),
		keyfuncs.Join(keyfuncs.Const("guest"), keyfuncs.Header("X-Device")),
	)

	fmt.Println(caller(request{values: map[any]any{"user": "anna"}}))
	fmt.Println(caller(withHeader("X-Device", "anna")))
	// Output:
	// 4:user4:anna <nil>
	// 5:guest4:anna <nil>
}
