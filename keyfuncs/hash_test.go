package keyfuncs_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/keyfuncs"
)

func TestHash(t *testing.T) {
	fault := errors.New("fault")
	if key, err := keyfuncs.Hash(fixed("", nil))(request{}); key != "" || err != nil {
		t.Errorf("got %q, %v", key, err)
	}
	if key, err := keyfuncs.Hash(fixed("a", fault))(request{}); key != "" || err != fault {
		t.Errorf("got %q, %v", key, err)
	}
	wantPanic(t, "keyfuncs: Hash(nil)", func() { keyfuncs.Hash(nil) })
}

func ExampleHash() {
	fmt.Println(keyfuncs.Hash(keyfuncs.Field("iban"))(request{
		fields: map[string]string{"iban": "abc"},
	}))
	// Output: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad <nil>
}
