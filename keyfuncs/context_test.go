package keyfuncs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/keyfuncs"
)

func TestContext(t *testing.T) {
	fault := errors.New("fault")
	fn := keyfuncs.Context(func(context.Context) (string, error) { return "", fault })
	if _, err := fn(request{}); err != fault {
		t.Errorf("error = %v, want %v", err, fault)
	}
	wantPanic(t, "keyfuncs: Context(nil)", func() { keyfuncs.Context(nil) })
}

func ExampleContext() {
	// tenantOf is how the service finds the tenant of a request everywhere else, too.
	type tenantKey struct{}
	tenantOf := func(ctx context.Context) (string, error) {
		tenant, _ := ctx.Value(tenantKey{}).(string)
		return tenant, nil
	}

	r := request{ctx: context.WithValue(context.Background(), tenantKey{}, "acme")}
	fmt.Println(keyfuncs.Context(tenantOf)(r))
	// Output: acme <nil>
}
