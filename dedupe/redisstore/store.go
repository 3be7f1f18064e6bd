package redisstore

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
)

// Client is what a [Store] needs of a go-redis client: *redis.Client (single or failover),
// *redis.ClusterClient and redis.UniversalClient all are one.
type Client interface {
	Process(ctx context.Context, command redis.Cmder) error
}

// Store is a [dedupe.Store] in Redis. It is safe for concurrent use.
type Store struct {
	prefix string
	calls  calls
	line   line
	closer func() error
}

var _ dedupe.Store = (*Store)(nil)

// Option changes a [Store].
type Option func(*Store)

// WithPrefix sets what every key begins with. It keeps services apart that share a Redis, and is
// what an ACL rule names (~interlock:*). Changing it forgets every answer and lets go of every
// key. The default is "interlock:".
func WithPrefix(prefix string) Option { return func(s *Store) { s.prefix = prefix } }

// WithBudget sets how long one call to Redis may take, the client's own retries included, whatever
// the client's timeouts are. A request makes two calls. A smaller budget tells an outage sooner and
// takes a slow moment of Redis for one. From 1 ms to 1 min; the default is 250 ms.
func WithBudget(d time.Duration) Option { return func(s *Store) { s.calls.budget.length = d } }

// New returns a Store over client, which stays the caller's to close. It panics on a nil client
// and on an option out of bounds, which are mistakes in the program.
//
// Any settings of the client will do. A *redis.Client with ContextTimeoutEnabled is used as it is. Of
// one without, a copy is used that shares its connections and honours deadlines; hooks of the client,
// such as tracing, do not see the store's calls then. [Connect] makes clients with fitting settings.
func New(client Client, options ...Option) *Store {
	if client == nil {
		panic("redisstore.New: the client is nil; give one, such as redis.NewClient(…)")
	}
	s, err := newStore(options)
	if err != nil {
		panic("redisstore.New: " + err.Error())
	}
	s.calls.use(client)
	s.line.use(s, client)
	return s
}

func newStore(options []Option) (*Store, error) {
	s := &Store{prefix: "interlock:"}
	s.calls.budget.length = 250 * time.Millisecond
	for _, option := range options {
		option(s)
	}
	if length := s.calls.budget.length; length < time.Millisecond || length > time.Minute {
		return nil, fmt.Errorf("WithBudget(%v) must be from 1ms to 1m0s; the default is 250ms", length)
	}
	if strings.ContainsAny(s.prefix, "{}") {
		return nil, fmt.Errorf("WithPrefix(%q) must not contain braces, which decide the slot in a cluster", s.prefix)
	}
	return s, nil
}

// Close ends the store's subscription, if it has one, and closes the client if [Open] made it.
func (s *Store) Close() error {
	s.line.close()
	if s.closer == nil {
		return nil
	}
	return s.closer()
}

// Key returns the Redis key of a record, for those who look at Redis by hand. The braces make a
// cluster place it by the digest alone.
func (s *Store) Key(d dedupe.Digest) string {
	return string(s.appendKey(nil, d))
}

func (s *Store) appendKey(text []byte, d dedupe.Digest) []byte {
	text = append(append(text, s.prefix...), '{')
	return append(base64.RawURLEncoding.AppendEncode(text, d[:]), '}')
}

// Claim implements [dedupe.Store].
func (s *Store) Claim(ctx context.Context, c dedupe.Claim) (dedupe.Claimed, error) {
	call := s.newCall(claimScript, c.Holder)
	call.add(microseconds(c.Lease), milliseconds(c.Lease)+milliseconds(c.Lapse))
	if c.Fingerprint == (dedupe.Fingerprint{}) {
		call.add("")
	} else {
		call.add(c.Fingerprint[:])
	}
	if c.Lapse > 0 {
		call.add(milliseconds(c.Lapse))
	} else {
		call.add("")
	}
	place := ""
	if c.Waiter != nil {
		place = s.line.enter(call.key(), c)
	}
	call.add(place)
	if c.Yields == (dedupe.Token{}) {
		call.add("")
	} else {
		call.add(c.Yields[:])
	}
	r, err := s.calls.do(ctx, call)
	if err != nil {
		return dedupe.Claimed{}, err // in line or not: the engine releases it
	}
	if c.Waiter != nil {
		s.line.found(call.key(), c, r.status)
	}
	return r.claimed()
}

// Extend implements [dedupe.Store].
func (s *Store) Extend(ctx context.Context, h dedupe.Holder, lease time.Duration) error {
	call := s.newCall(extendScript, h)
	call.add(microseconds(lease), milliseconds(lease))
	return s.expect(ctx, call, "extended")
}

// Complete implements [dedupe.Store].
func (s *Store) Complete(ctx context.Context, h dedupe.Holder, answer []byte, retention time.Duration) error {
	call := s.newCall(completeScript, h)
	call.add(milliseconds(retention))
	if answer != nil {
		call.add(answer)
	}
	err := s.expect(ctx, call, "completed")
	if err == nil { // not before: a late word about the grant must not end the lease
		s.line.leave(h.Token)
	}
	return err
}

// Release implements [dedupe.Store].
func (s *Store) Release(ctx context.Context, h dedupe.Holder) error {
	s.line.leave(h.Token)
	return s.expect(ctx, s.newCall(releaseScript, h), "released")
}

// expect carries out a call that has one good status.
func (s *Store) expect(ctx context.Context, call call, status string) error {
	r, err := s.calls.do(ctx, call)
	if err != nil {
		return err
	}
	return r.expect(status)
}

// Durations go to Redis, never times: only the server's clock decides what has expired. They are
// rounded up, so that nothing ends before it should, and nothing is 0 that was not.

func microseconds(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func milliseconds(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
