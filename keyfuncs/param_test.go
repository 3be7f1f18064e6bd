package keyfuncs_test

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

func TestParam(t *testing.T) {
	r := request{params: map[string]string{"id": "7"}}
	if key, err := keyfuncs.Param("id")(r); key != "7" || err != nil {
		t.Errorf("got %q, %v", key, err)
	}
	if key, err := keyfuncs.Param("other")(r); key != "" || err != nil {
		t.Errorf("got %q, %v", key, err)
	}
	unusable := &dedupe.KeyError{Source: "field id", Problem: "is a list"}
	if _, err := keyfuncs.Param("id")(request{err: unusable}); err != unusable {
		t.Errorf("error = %v, want %v", err, unusable)
	}
	wantPanic(t, `keyfuncs: Param("")`, func() { keyfuncs.Param("") })
}

func ExampleParam() {
	// POST /accounts/{id}/withdraw, called as POST /accounts/7/withdraw.
	r := request{params: map[string]string{"id": "7"}}

	fmt.Println(keyfuncs.Param("id")(r))
	// Output: 7 <nil>
}
