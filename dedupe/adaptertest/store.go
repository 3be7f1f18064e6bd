package adaptertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// store is a [dedupe.Store] that does some things otherwise than the one beneath. Functions that are
// nil change nothing.
type store struct {
	dedupe.Store

	claim    func(c dedupe.Claim, next func(dedupe.Claim) (dedupe.Claimed, error)) (dedupe.Claimed, error)
	extend   func(dedupe.Holder) error // in its stead
	complete func(next func() error) error
	release  func(next func() error) error
}

func (s *store) Claim(ctx context.Context, c dedupe.Claim) (dedupe.Claimed, error) {
	if s.claim == nil {
		return s.Store.Claim(ctx, c)
	}
	return s.claim(c, func(c dedupe.Claim) (dedupe.Claimed, error) { return s.Store.Claim(ctx, c) })
}

func (s *store) Extend(ctx context.Context, h dedupe.Holder, lease time.Duration) error {
	if s.extend != nil {
		return s.extend(h)
	}
	return s.Store.Extend(ctx, h, lease)
}

func (s *store) Complete(ctx context.Context, h dedupe.Holder, answer []byte, retention time.Duration) error {
	next := func() error { return s.Store.Complete(ctx, h, answer, retention) }
	if s.complete != nil {
		return s.complete(next)
	}
	return next()
}

func (s *store) Release(ctx context.Context, h dedupe.Holder) error {
	next := func() error { return s.Store.Release(ctx, h) }
	if s.release != nil {
		return s.release(next)
	}
	return next()
}

// secret is in the text of errors that clients must not be told.
const secret = "10.0.0.7"

// errOutage is what a store returns that cannot be reached.
var errOutage = errors.Join(dedupe.ErrStoreUnavailable, errors.New("dial tcp "+secret+":6379: connection refused"))
