package dedupe_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

// errDown stands for what a client library says when there is nobody at the other end.
var errDown = errors.New("connection refused")

// verb is a method of [dedupe.Store].
type verb string

const (
	claim    verb = "claim"
	extend   verb = "extend"
	complete verb = "complete"
	release  verb = "release"
)

// visit is one call of a store.
type visit struct {
	verb   verb
	holder dedupe.Holder
	at     time.Time
	cause  error // of the context it came with
	claim  dedupe.Claim
	lasts  time.Duration // lease or retention
	answer []byte
}

// spy is a store that writes down each call, and lets a test fail it before or after the store
// behind it carries it out.
type spy struct {
	behind dedupe.Store

	mu     sync.Mutex
	visits []visit
	before func(context.Context, visit) error
	after  func(context.Context, visit) error
	lie    func(dedupe.Claim) (dedupe.Claimed, bool) // what to say to a claim instead of carrying it out
}

func newSpy() *spy { return &spy{behind: memstore.New()} }

// failing makes the verbs fail as in an outage, before they reach the store behind.
func (s *spy) failing(verbs ...verb) {
	s.intercept(func(_ context.Context, v visit) error {
		if slices.Contains(verbs, v.verb) {
			return errors.Join(dedupe.ErrStoreUnavailable, errDown)
		}
		return nil
	}, nil)
}

// down makes everything fail.
func (s *spy) down() { s.failing(claim, extend, complete, release) }

// up ends every interception.
func (s *spy) up() { s.intercept(nil, nil) }

func (s *spy) intercept(before, after func(context.Context, visit) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// saying makes every claim find what is given.
func (s *spy) saying(claimed dedupe.Claimed) *spy {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lie = func(dedupe.Claim) (dedupe.Claimed, bool) { return claimed, true }
	return s
}

func (s *spy) call(ctx context.Context, v visit, carryOut func() error) error {
	v.at, v.cause = time.Now(), context.Cause(ctx)
	s.mu.Lock()
	s.visits = append(s.visits, v)
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if err := before(ctx, v); err != nil {
			return err
		}
	}
	err := carryOut()
	if err == nil && after != nil {
		err = after(ctx, v)
	}
	return err
}

func (s *spy) Claim(ctx context.Context, c dedupe.Claim) (claimed dedupe.Claimed, err error) {
	err = s.call(ctx, visit{verb: claim, holder: c.Holder, claim: c, lasts: c.Lease}, func() (err error) {
		if s.lie != nil {
			if lie, told := s.lie(c); told {
				claimed = lie
				return nil
			}
		}
		claimed, err = s.behind.Claim(ctx, c)
		return err
	})
	if err != nil {
		claimed = dedupe.Claimed{}
	}
	return claimed, err
}

func (s *spy) Extend(ctx context.Context, h dedupe.Holder, lease time.Duration) error {
	return s.call(ctx, visit{verb: extend, holder: h, lasts: lease}, func() error {
		return s.behind.Extend(ctx, h, lease)
	})
}

func (s *spy) Complete(ctx context.Context, h dedupe.Holder, answer []byte, retention time.Duration) error {
	return s.call(ctx, visit{verb: complete, holder: h, lasts: retention, answer: answer}, func() error {
		return s.behind.Complete(ctx, h, answer, retention)
	})
}

func (s *spy) Release(ctx context.Context, h dedupe.Holder) error {
	return s.call(ctx, visit{verb: release, holder: h}, func() error {
		return s.behind.Release(ctx, h)
	})
}

// seen returns the calls of verb so far, or all calls without one.
func (s *spy) seen(verbs ...verb) []visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []visit
	for _, v := range s.visits {
		if len(verbs) == 0 || slices.Contains(verbs, v.verb) {
			found = append(found, v)
		}
	}
	return found
}

// verbs returns the verbs of all calls so far.
func (s *spy) verbs() []verb {
	var all []verb
	for _, v := range s.seen() {
		all = append(all, v.verb)
	}
	return all
}

// sees checks the verbs of all calls so far.
func (s *spy) sees(tb testing.TB, want ...verb) {
	tb.Helper()
	if got := s.verbs(); !slices.Equal(got, want) {
		tb.Errorf("the store was called for %v, want %v", got, want)
	}
}

// granted returns how long the last claim or extension of the first guarded key made it last, and
// from when: the earliest moment at which the store may give it to another.
func (s *spy) grantedUntil() time.Time {
	granted := s.seen(claim, extend)
	last := granted[len(granted)-1]
	return last.at.Add(last.lasts)
}

// journal collects the events of guards.
type journal struct {
	mu     sync.Mutex
	events []dedupe.Event
}

func (j *journal) observe() dedupe.Option {
	return dedupe.WithObserver(func(e dedupe.Event) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.events = append(j.events, e)
	})
}

func (j *journal) seen(kinds ...dedupe.EventKind) []dedupe.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []dedupe.Event
	for _, e := range j.events {
		if len(kinds) == 0 || slices.Contains(kinds, e.Kind) {
			found = append(found, e)
		}
	}
	return found
}
