package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

func Example() {
	ctx := context.Background()
	store := memstore.New()

	// Guards make digests and tokens themselves; here they stand for two requests with one key.
	first := dedupe.Holder{Digest: dedupe.Digest{7}, Token: dedupe.Token{1}}
	second := dedupe.Holder{Digest: dedupe.Digest{7}, Token: dedupe.Token{2}}

	claimed, _ := store.Claim(ctx, dedupe.Claim{Holder: first, Lease: time.Minute})
	fmt.Println("first:", claimed.Status)

	claimed, _ = store.Claim(ctx, dedupe.Claim{Holder: second, Lease: time.Minute})
	fmt.Println("second:", claimed.Status)

	err := store.Extend(ctx, second, time.Minute)
	fmt.Println("not its lease:", errors.Is(err, dedupe.ErrLeaseLost))

	_ = store.Complete(ctx, first, []byte("201 Created"), time.Hour)

	claimed, _ = store.Claim(ctx, dedupe.Claim{Holder: second, Lease: time.Minute})
	fmt.Printf("second: %s, %s\n", claimed.Status, claimed.Answer)
	fmt.Println("records:", store.Len())

	// Output:
	// first: granted
	// second: held
	// not its lease: true
	// second: completed, 201 Created
	// records: 1
}
