package keyfuncs_test

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

// No header can name a caller that is Anyone.
func TestAnyoneIsNobody(t *testing.T) {
	anyone, err := keyfuncs.Anyone(request{})
	if anyone == "" || err != nil {
		t.Fatalf("got %q, %v", anyone, err)
	}
	for _, line := range []string{anyone, quoted(anyone), "Bearer " + anyone} {
		r := withHeader("Authorization", line)
		for _, fn := range []dedupe.KeyFunc{keyfuncs.Header("Authorization"), keyfuncs.Bearer()} {
			if caller, err := fn(r); err == nil {
				t.Errorf("line %q names the caller %q", line, caller)
			}
		}
	}
}

func ExampleAnyone() {
	var caller dedupe.KeyFunc = keyfuncs.Anyone // without parentheses

	anna, _ := caller(withHeader("Authorization", "Bearer anna"))
	bert, _ := caller(withHeader("Authorization", "Bearer bert"))
	fmt.Println(anna == bert)
	// Output: true
}
