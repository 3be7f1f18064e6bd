package keyfuncs_test

import (
	"fmt"

	"github.com/interlock-go/interlock/keyfuncs"
)

func ExampleOperation() {
	fmt.Println(keyfuncs.Operation(request{operation: "POST /accounts/{id}/withdraw"}))
	// Output: POST /accounts/{id}/withdraw <nil>
}
