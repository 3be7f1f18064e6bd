package redisstore

import (
	"context"
	"encoding/base64"
	"errors"
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
func WithBudget(d time.Duration) Option { return func(s *Store) { s.calls.budget = d } }

// New returns a Store over client, which stays the caller's to close. It panics on a nil client
// and on an option out of bounds, which are mistakes in the program.
//
// Any settings of the client will do. Those that [Open] makes are the best: see there.
func New(client Client, options ...Option) *Store {
	if client == nil {
		panic("redisstore.New: the client is nil; give one, such as redis.NewClient(…)")
	}
	s, err := newStore(options)
	if err != nil {
		panic("redisstore.New: " + err.Error())
	}
	s.calls.use(client)
	return s
}

func newStore(options []Option) (*Store, error) {
	s := &Store{prefix: "interlock:", calls: calls{budget: 250 * time.Millisecond}}
	for _, option := range options {
		option(s)
	}
	if s.calls.budget < time.Millisecond || s.calls.budget > time.Minute {
		return nil, fmt.Errorf("WithBudget(%v) must be from 1ms to 1m0s; the default is 250ms", s.calls.budget)
	}
	if strings.ContainsAny(s.prefix, "{}") {
		return nil, fmt.Errorf("WithPrefix(%q) must not contain braces, which decide the slot in a cluster", s.prefix)
	}
	return s, nil
}

// Close closes the client if [Open] made it.
func (s *Store) Close() error {
	if s.closer == nil {
		return nil
	}
	return s.closer()
}

// Key returns the Redis key of a record, for those who look at Redis by hand. The braces make a
// cluster place it by the digest alone.
func (s *Store) Key(d dedupe.Digest) string {
	var space [128]byte
	key := append(space[:0], s.prefix...)
	key = base64.RawURLEncoding.AppendEncode(append(key, '{'), d[:])
	return string(append(key, '}'))
}

// Claim implements [dedupe.Store].
func (s *Store) Claim(ctx context.Context, c dedupe.Claim) (dedupe.Claimed, error) {
	args := make([]any, 0, 6)
	args = append(args, microseconds(c.Lease), milliseconds(c.Lease)+milliseconds(c.Lapse))
	if c.Fingerprint == (dedupe.Fingerprint{}) {
		args = append(args, "")
	} else {
		args = append(args, c.Fingerprint[:])
	}
	if c.Lapse > 0 {
		args = append(args, milliseconds(c.Lapse))
	}
	r, err := s.call(ctx, claimScript, c.Holder, args...)
	if err != nil {
		return dedupe.Claimed{}, err
	}
	switch r.status {
	case "granted":
		fence, err := r.number()
		return dedupe.Claimed{Status: dedupe.StatusGranted, Fence: uint64(fence)}, err //nolint:gosec // number is not negative
	case "held":
		rest, err := r.number()
		return dedupe.Claimed{Status: dedupe.StatusHeld, Remaining: time.Duration(rest) * time.Microsecond}, err
	case "lapsed":
		rest, err := r.number()
		return dedupe.Claimed{Status: dedupe.StatusLapsed, Remaining: time.Duration(rest) * time.Millisecond}, err
	case "mismatch":
		return dedupe.Claimed{Status: dedupe.StatusMismatch}, nil
	case "completed":
		return dedupe.Claimed{Status: dedupe.StatusCompleted, Answer: r.bytes()}, nil
	default:
		return dedupe.Claimed{}, r.unexpected()
	}
}

// Extend implements [dedupe.Store].
func (s *Store) Extend(ctx context.Context, h dedupe.Holder, lease time.Duration) error {
	r, err := s.call(ctx, extendScript, h, microseconds(lease), milliseconds(lease))
	if err != nil {
		return err
	}
	return r.expect("extended")
}

// Complete implements [dedupe.Store].
func (s *Store) Complete(ctx context.Context, h dedupe.Holder, answer []byte, retention time.Duration) error {
	args := []any{milliseconds(retention), answer}
	if answer == nil {
		args = args[:1]
	}
	r, err := s.call(ctx, completeScript, h, args...)
	if err != nil {
		return err
	}
	return r.expect("completed")
}

// Release implements [dedupe.Store].
func (s *Store) Release(ctx context.Context, h dedupe.Holder) error {
	r, err := s.call(ctx, releaseScript, h)
	if err != nil {
		return err
	}
	return r.expect("released")
}

// call runs a script within the budget and returns its reply, once that is known to be this call's.
func (s *Store) call(ctx context.Context, script *script, h dedupe.Holder, args ...any) (reply, error) {
	stamp := s.calls.stamp(h.Token)
	args = append([]any{stamp}, args...)
	value, err := s.calls.do(ctx, script, s.Key(h.Digest), args)
	if err != nil {
		return reply{}, wrap(script, err)
	}
	return readReply(script, stamp, value)
}

// Durations go to Redis, never times: only the server's clock decides what has expired. They are
// rounded up, so that nothing ends before it should, and nothing is 0 that was not.

func microseconds(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func milliseconds(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// wrap makes a [dedupe.Store]'s error of a client's: Redis saying that the key holds something
// else is about the record, everything else is an outage.
func wrap(script *script, err error) error {
	var said redis.Error
	if errors.As(err, &said) { // before Redis 7 the code stands in the middle of the text
		if strings.Contains(said.Error(), "WRONGTYPE ") {
			return fmt.Errorf("redisstore: %s: %w: %w", script.name, dedupe.ErrRecordUnreadable, err)
		}
		for code, fix := range fixes {
			if strings.Contains(said.Error(), code+" ") {
				return fmt.Errorf("redisstore: %s: %w: %w (%s)", script.name, dedupe.ErrStoreUnavailable, err, fix)
			}
		}
	}
	return fmt.Errorf("redisstore: %s: %w: %w", script.name, dedupe.ErrStoreUnavailable, err)
}

// fixes says what an operator can do about errors that do not go away by themselves.
var fixes = map[string]string{
	"OOM":      "Redis is full: raise maxmemory, with maxmemory-policy noeviction",
	"NOPERM":   "allow the Redis user +evalsha +eval +time +exists +hmget +hget +hset +hdel +del +pexpire +pttl on the store's prefix",
	"NOAUTH":   "give the client a user and a password",
	"READONLY": "the client talks to a replica: point it at the primary, or use a failover client",
	"MISCONF":  "Redis cannot save to disk and refuses writes: see its log",
}

var errReply = errors.New("a reply that is not this call's, or not understood")
