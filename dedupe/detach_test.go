package dedupe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

type detachKey struct{}

// TestDetach runs work on a detached context while the caller's context ends and the lease is lost,
// in either order.
func TestDetach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lease = 3 * time.Second
		// The store cannot be reached after the claim, so that the lease is lost in time.
		store := &unrenewable{Store: memstore.New()}
		guard, err := dedupe.Serialize(store, "account", nil, dedupe.WithLease(lease))
		if err != nil {
			t.Fatal(err)
		}
		ctx, hangUp := context.WithCancel(context.WithValue(t.Context(), detachKey{}, "value"))
		var late context.Context
		err = guard.Run(ctx, "7", func(ctx context.Context) error {
			detached := dedupe.Detach(ctx)
			if detached.Value(detachKey{}) != "value" {
				t.Error("the value is gone")
			}
			hangUp()
			<-ctx.Done()
			if err := detached.Err(); err != nil {
				t.Errorf("ended with the caller: %v", err)
			}
			began := time.Now()
			<-detached.Done()
			if waited := time.Since(began); waited >= lease {
				t.Errorf("ended after %v, when the lease of %v was over", waited, lease)
			}
			if cause := context.Cause(detached); !errors.Is(cause, dedupe.ErrLeaseLost) {
				t.Errorf("ended because of %v", cause)
			}
			if cause := context.Cause(dedupe.Detach(ctx)); !errors.Is(cause, dedupe.ErrLeaseLost) {
				t.Errorf("detached after the loss: %v", cause)
			}
			late = ctx
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if dedupe.Detach(late).Err() == nil {
			t.Error("detached after the end: it goes on")
		}
	})
}

// TestDetachEndsWithTheHandler keeps what a handler started from going on without its lease.
func TestDetachEndsWithTheHandler(t *testing.T) {
	t.Parallel()
	guard, err := dedupe.Serialize(memstore.New(), "account", nil)
	if err != nil {
		t.Fatal(err)
	}
	var detached context.Context
	if err := guard.Run(t.Context(), "7", func(ctx context.Context) error {
		detached = dedupe.Detach(ctx)
		return detached.Err()
	}); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(context.Cause(detached), context.Canceled) {
		t.Errorf("after the handler: %v", context.Cause(detached))
	}
}

// TestDetachFromOuterLease watches the leases of all guards, not only the innermost.
func TestDetachFromOuterLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &unrenewable{Store: memstore.New()}
		outer, err1 := dedupe.Serialize(store, "outer", nil, dedupe.WithLease(time.Second))
		inner, err2 := dedupe.Serialize(memstore.New(), "inner", nil)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		err := outer.Run(t.Context(), "7", func(ctx context.Context) error {
			return inner.Run(ctx, "7", func(ctx context.Context) error {
				detached := dedupe.Detach(ctx)
				<-detached.Done()
				return context.Cause(detached)
			})
		})
		if !errors.Is(err, dedupe.ErrLeaseLost) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDetachWithoutLease(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	detached := dedupe.Detach(ctx)
	cancel()
	if detached.Done() != nil {
		t.Error("a context without a lease ends")
	}
}

// unrenewable is a store that does not hear renewals.
type unrenewable struct{ dedupe.Store }

func (*unrenewable) Extend(context.Context, dedupe.Holder, time.Duration) error {
	return dedupe.ErrStoreUnavailable
}
