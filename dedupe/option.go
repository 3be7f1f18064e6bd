package dedupe

import (
	"errors"
	"fmt"
	"time"
)

// Option changes how a guard behaves. [Serialize] and [Once] check all of them together and
// report every bad one.
type Option func(*settings)

// CrashPolicy says what becomes of an idempotency key whose owner's lease ran out without a result:
// its process died, or was cut off from the store.
type CrashPolicy uint8

const (
	// CrashTakeOver lets the next request with the key run. The work of the first may have been
	// done, in part or in whole; the handler has to cope with that, for example by its fence.
	CrashTakeOver CrashPolicy = iota
	// CrashHold refuses the key as a conflict until the retention ends.
	CrashHold
	// CrashReport refuses the key with [ErrUncertain] until the retention ends, so that somebody
	// looks at what happened.
	CrashReport
)

type settings struct {
	lease        time.Duration
	maxHold      time.Duration
	maxHoldGiven bool
	wait         time.Duration
	retention    time.Duration
	maxWaiters   int
	failOpen     bool
	optionalKey  bool
	safeMethods  bool
	skip         func(Request) bool
	observe      func(Event)

	// For Serialize only.
	also []KeyFunc

	// For Once only.
	fingerprint func(Request) ([]byte, error)
	codec       Codec
	crash       CrashPolicy
	operation   string

	serializeOnly, onceOnly []string // names of the options used that fit one kind only
	nilGiven                []string // names of the options that were given a nil function
}

func (s *settings) given(option string, isNil bool) {
	if isNil {
		s.nilGiven = append(s.nilGiven, option)
	}
}

func defaults() settings {
	return settings{
		lease:      30 * time.Second,
		maxHold:    15 * time.Minute,
		retention:  24 * time.Hour,
		maxWaiters: 256,
	}
}

// WithLease sets how long a key is granted for at a time; it is renewed every third of that while
// the handler runs. A shorter lease frees the key sooner after a crash, costs more renewals, and
// leaves less time to ride out an outage of the store: the handler's context is cancelled when no
// renewal has succeeded for 19/20 of the lease. From 50 ms to 1 h; the default is 30 s.
func WithLease(d time.Duration) Option { return func(s *settings) { s.lease = d } }

// WithMaxHold caps how long one handler may hold a key, renewals included. After that its context
// is cancelled with a cause that matches [ErrLeaseLost] and [ErrHoldTooLong], and the key is free
// again. It bounds what a handler that hangs can block. From the lease to 24 h; the default is
// 15 min, or the lease if that is longer.
func WithMaxHold(d time.Duration) Option {
	return func(s *settings) { s.maxHold, s.maxHoldGiven = d, true }
}

// WithWait sets how long a request waits for a key that is held before it is refused as a conflict.
// A waiter of a Once that sees the first one finish gets its answer. Waiting keeps a connection and
// a goroutine busy, and each of several guards waits on its own: keep the sum below the client's own
// timeout. From 0 to 10 min; the default is 0: refuse at once.
func WithWait(d time.Duration) Option { return func(s *settings) { s.wait = d } }

// WithMaxWaiters sets how many requests may wait for one key in this process; one more is refused
// at once. It bounds the memory and connections that a hot key can take. From 1 to 100,000; the
// default is 256.
func WithMaxWaiters(n int) Option { return func(s *settings) { s.maxWaiters = n } }

// WithRetention sets how long a Once keeps an answer and with it the knowledge that the request
// ran: a repeat that comes later runs again. A longer retention costs memory in the store, the
// answer's size for each request. From 1 s to 90 days; the default is 24 h.
func WithRetention(d time.Duration) Option {
	return func(s *settings) { s.retention = d; s.onceOnly = append(s.onceOnly, "WithRetention") }
}

// WithFailOpen lets the handler run without a guard when the store is unavailable. Requests are
// then neither one at a time nor once; use it where an answer matters more than that. A record
// that cannot be read still refuses. The default is to refuse.
func WithFailOpen() Option { return func(s *settings) { s.failOpen = true } }

// WithOptionalKey lets a request without a key pass unguarded. One whose key is unusable is still
// refused. The default is to refuse both.
func WithOptionalKey() Option { return func(s *settings) { s.optionalKey = true } }

// WithSafeMethods guards safe operations (GET, HEAD, OPTIONS, TRACE) as well. The default is to
// let them pass.
func WithSafeMethods() Option { return func(s *settings) { s.safeMethods = true } }

// WithSkip lets requests pass unguarded for which skip returns true. skip is called by many
// goroutines at once. The default is to skip none.
func WithSkip(skip func(Request) bool) Option {
	return func(s *settings) { s.skip = skip; s.given("WithSkip", skip == nil) }
}

// WithObserver has observe called for each [Event], on the goroutine that caused it: keep it short.
// It is called by many goroutines at once, and must not panic: some are the engine's own. The default
// is none.
func WithObserver(observe func(Event)) Option {
	return func(s *settings) { s.observe = observe; s.given("WithObserver", observe == nil) }
}

// WithAlso adds resource keys to a Serialize: a transfer locks the account it names in its path and
// the one it names in its body. Keys are taken in one fixed order, all or none, so that crossing
// transfers neither deadlock nor both fail. Each key costs two more commands. The default is none.
func WithAlso(keys ...KeyFunc) Option {
	return func(s *settings) {
		s.also = append(s.also, keys...)
		s.serializeOnly = append(s.serializeOnly, "WithAlso")
	}
}

// WithFingerprint replaces what a repeat must bring unchanged, besides the request's target (method,
// path and query, or the gRPC method), which always counts. Bytes that differ make a repeat a
// mismatch; an error refuses the request as one with an invalid key. It is called by many goroutines at
// once. Give one where a repeat is not the same to the byte, such as a multipart body, whose boundary
// most clients draw anew each time; package keyfuncs has some. After a change, repeats of earlier
// requests are mismatches until their retention ends. The default is the whole [Payload].
func WithFingerprint(fingerprint func(Request) ([]byte, error)) Option {
	return func(s *settings) {
		s.fingerprint = fingerprint
		s.given("WithFingerprint", fingerprint == nil)
		s.onceOnly = append(s.onceOnly, "WithFingerprint")
	}
}

// WithCodec has answers changed on their way to the store and back, such as sealed or compressed:
// package atrest has both. An answer that cannot be encoded leaves a tombstone, one that cannot be
// decoded is refused with [ErrAnswerUnavailable]. It costs its time for each answer kept and replayed. The
// default is to keep answers as they are.
func WithCodec(c Codec) Option {
	return func(s *settings) {
		s.codec = c
		s.given("WithCodec", c == nil)
		s.onceOnly = append(s.onceOnly, "WithCodec")
	}
}

// WithCrashPolicy sets what becomes of a key whose owner vanished. The default is [CrashTakeOver].
func WithCrashPolicy(p CrashPolicy) Option {
	return func(s *settings) { s.crash = p; s.onceOnly = append(s.onceOnly, "WithCrashPolicy") }
}

// WithOperation binds the keys of a Once to name instead of to the operation of each request. It
// makes one key count over several routes, and keeps apart the keys of different jobs that use
// [Guard.Run] or [Fetch] on one store. The default is the request's own operation; jobs share one.
func WithOperation(name string) Option {
	return func(s *settings) { s.operation = name; s.onceOnly = append(s.onceOnly, "WithOperation") }
}

// The bounds that the options' comments name.
const (
	minLease, maxLease         = 50 * time.Millisecond, time.Hour
	maxMaxHold                 = 24 * time.Hour
	maxWait                    = 10 * time.Minute
	minRetention, maxRetention = time.Second, 90 * 24 * time.Hour
	minWaiters, maxWaiters     = 1, 100_000
)

// problems returns an error for each option that does not hold for a guard of kind k.
func (s *settings) problems(k kind) []error {
	var found []error
	between := func(option string, d, low, high time.Duration, fallback string) {
		if d < low || d > high {
			found = append(found, fmt.Errorf("%s(%v) must be from %v to %v; the default is %s", option, d, low, high, fallback))
		}
	}
	between("WithLease", s.lease, minLease, maxLease, "30s")
	between("WithMaxHold", s.maxHold, max(minLease, s.lease), maxMaxHold, "15m0s")
	between("WithWait", s.wait, 0, maxWait, "0s")
	between("WithRetention", s.retention, minRetention, maxRetention, "24h0m0s")
	if s.maxWaiters < minWaiters || s.maxWaiters > maxWaiters {
		found = append(found, fmt.Errorf("WithMaxWaiters(%d) must be from %d to %d; the default is 256", s.maxWaiters, minWaiters, maxWaiters))
	}
	if s.crash > CrashReport {
		found = append(found, fmt.Errorf("WithCrashPolicy(%d) must be CrashTakeOver, CrashHold or CrashReport; the default is CrashTakeOver", s.crash))
	}
	for i, key := range s.also {
		if key == nil {
			found = append(found, fmt.Errorf("WithAlso: key function %d is nil; leave it out or give one", i+1))
		}
	}
	for _, option := range s.nilGiven {
		found = append(found, fmt.Errorf("%s: the function is nil; leave the option out or give one", option))
	}
	misplaced, home := s.onceOnly, "Once"
	if k == kindOnce {
		misplaced, home = s.serializeOnly, "Serialize"
	}
	for _, option := range misplaced {
		found = append(found, fmt.Errorf("%s is an option of %s; leave it out here", option, home))
	}
	return found
}

var errOptionNil = errors.New("an option is nil; leave it out")
