package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// contextCases are about calls whose context is done before they are made: they return at once, say
// so, and change nothing.
var contextCases = []testCase{
	{"CancelledClaim", func(t *trial) {
		ctx := cancelled(t.Context())
		t.unavailable(context.Canceled, func() error {
			_, err := t.store.Claim(ctx, t.newClaim(long))
			return err
		})
		t.wantFree()
	}},
	{"CancelledRepeatOfClaim", func(t *trial) {
		c := t.newClaim(long)
		t.grant(c)
		c.Lease = short
		t.unavailable(context.Canceled, func() error {
			_, err := t.store.Claim(cancelled(t.Context()), c)
			return err
		})
		t.outlive(short)
		t.wantHeld(c.Holder)
	}},
	{"CancelledExtend", func(t *trial) {
		h := t.hold(long)
		t.unavailable(context.Canceled, func() error {
			return t.store.Extend(cancelled(t.Context()), h, short)
		})
		t.outlive(short)
		t.wantHeld(h)
	}},
	{"CancelledComplete", func(t *trial) {
		h := t.hold(long)
		t.unavailable(context.Canceled, func() error {
			return t.store.Complete(cancelled(t.Context()), h, []byte("answer"), long)
		})
		t.wantHeld(h)
	}},
	{"CancelledRelease", func(t *trial) {
		h := t.hold(long)
		t.unavailable(context.Canceled, func() error {
			return t.store.Release(cancelled(t.Context()), h)
		})
		t.wantHeld(h)
	}},
	{"DeadlineOfClaim", func(t *trial) {
		t.unavailable(context.DeadlineExceeded, func() error {
			ctx, cancel := expired(t.Context())
			defer cancel()
			_, err := t.store.Claim(ctx, t.newClaim(long))
			return err
		})
		t.wantFree()
	}},
	{"DeadlineOfExtend", func(t *trial) {
		h := t.hold(long)
		t.unavailable(context.DeadlineExceeded, func() error {
			ctx, cancel := expired(t.Context())
			defer cancel()
			return t.store.Extend(ctx, h, short)
		})
		t.outlive(short)
		t.wantHeld(h)
	}},
	{"DeadlineOfComplete", func(t *trial) {
		h := t.hold(long)
		t.unavailable(context.DeadlineExceeded, func() error {
			ctx, cancel := expired(t.Context())
			defer cancel()
			return t.store.Complete(ctx, h, nil, long)
		})
		t.wantHeld(h)
	}},
	{"DeadlineOfRelease", func(t *trial) {
		h := t.hold(long)
		t.unavailable(context.DeadlineExceeded, func() error {
			ctx, cancel := expired(t.Context())
			defer cancel()
			return t.store.Release(ctx, h)
		})
		t.wantHeld(h)
	}},
}

// unavailable makes a call with a context that is done.
func (t *trial) unavailable(cause error, call func() error) {
	t.Helper()
	start := time.Now()
	err := call()
	switch {
	case !errors.Is(err, dedupe.ErrStoreUnavailable):
		t.Fatalf("got %v, want ErrStoreUnavailable", err)
	case !errors.Is(err, cause):
		t.Fatalf("got %v, want it joined with %v", err, cause)
	case time.Since(start) > t.patience/3:
		t.Fatalf("returned after %v", time.Since(start))
	}
}

func cancelled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func expired(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, time.Now().Add(-time.Second))
}
