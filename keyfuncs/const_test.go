package keyfuncs_test

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/keyfuncs"
)

func TestConst(t *testing.T) {
	wantPanic(t, `keyfuncs: Const("")`, func() { keyfuncs.Const("") })
}

func ExampleConst() {
	key := keyfuncs.Const("ledger")
	fmt.Println(key(request{operation: "POST /close"}))
	fmt.Println(key(request{operation: "POST /reopen"}))
	// Output:
	// ledger <nil>
	// ledger <nil>
}
