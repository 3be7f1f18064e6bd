package keyfuncs_test

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

func TestField(t *testing.T) {
	r := request{fields: map[string]string{"order.id": "7"}}
	if key, err := keyfuncs.Field("order.id")(r); key != "7" || err != nil {
		t.Errorf("got %q, %v", key, err)
	}
	if key, err := keyfuncs.Field("order")(r); key != "" || err != nil {
		t.Errorf("got %q, %v", key, err)
	}
	if _, err := keyfuncs.Field("order.id")(request{err: dedupe.ErrPayloadTooLarge}); err != dedupe.ErrPayloadTooLarge {
		t.Errorf("error = %v", err)
	}
	for _, path := range []string{"", ".", ".id", "order.", "order..id"} {
		wantPanic(t, "keyfuncs: Field(", func() { keyfuncs.Field(path) })
	}
}

func ExampleField() {
	// The body is {"order": {"id": 7}}.
	r := request{fields: map[string]string{"order.id": "7"}}

	fmt.Println(keyfuncs.Field("order.id")(r))
	// Output: 7 <nil>
}
