package storetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/dedupe/storetest"
)

// A store's own test hands over the store. One that can tell how long it keeps a record hands over
// that too.
func ExampleRun() { //nolint:testableexamples // it needs a test to run in
	testStore := func(t *testing.T) { // func TestStore(t *testing.T)
		store := memstore.New()
		storetest.Run(t, func(*testing.T) dedupe.Store { return store })
	}

	testTTLs := func(t *testing.T, client interface {
		dedupe.Store
		TTL(context.Context, dedupe.Digest) (left time.Duration, exists bool, err error)
	},
	) {
		storetest.Run(t,
			func(*testing.T) dedupe.Store { return client },
			storetest.WithTTLs(client.TTL),
		)
	}

	_, _ = testStore, testTTLs
}
