package keyfuncs_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

func TestMap(t *testing.T) {
	fault := errors.New("fault")
	never := func(string) (string, error) {
		t.Error("function called")
		return "", nil
	}
	if key, err := keyfuncs.Map(fixed("", nil), never)(request{}); key != "" || err != nil {
		t.Errorf("got %q, %v", key, err)
	}
	if key, err := keyfuncs.Map(fixed("a", fault), never)(request{}); key != "" || err != fault {
		t.Errorf("got %q, %v", key, err)
	}
	wantPanic(t, "keyfuncs: Map: the key function is nil", func() { keyfuncs.Map(nil, never) })
	wantPanic(t, "keyfuncs: Map: the function to pass", func() { keyfuncs.Map(keyfuncs.Anyone, nil) })
}

func ExampleMap() {
	// 7, 07 and +7 name the same account.
	account := keyfuncs.Map(keyfuncs.Param("id"), func(id string) (string, error) {
		number, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return "", &dedupe.KeyError{Source: "parameter id", Problem: "is not a number"}
		}
		return strconv.FormatInt(number, 10), nil
	})

	fmt.Println(account(request{params: map[string]string{"id": "07"}}))
	fmt.Println(account(request{params: map[string]string{"id": "seven"}}))
	// Output:
	// 7 <nil>
	//  parameter id is not a number
}
