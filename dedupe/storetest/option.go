package storetest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// Option tells [Run] about something that a [dedupe.Store] does not show.
type Option func(*settings)

type settings struct {
	ttl     func(context.Context, dedupe.Digest) (time.Duration, bool, error)
	corrupt func(context.Context, dedupe.Digest, Corruption) error
	lines   bool
}

// WithLines says that the store keeps waiting lines: cases about them then fail when no claim is ever
// queued. Default: they are skipped then.
func WithLines() Option { return func(s *settings) { s.lines = true } }

// WithTTLs lets the suite see that no record stays for ever: ttl returns how long what the store
// keeps for a digest has left, and whether it keeps anything. For a record that has no end it returns
// 0 or less with true. Default: the cases TTL are skipped.
func WithTTLs(ttl func(ctx context.Context, d dedupe.Digest) (left time.Duration, exists bool, err error)) Option {
	return func(s *settings) { s.ttl = ttl }
}

// WithCorrupt lets the suite see that a record which cannot be read is refused and left alone:
// corrupt puts one under the digest, in place of what is there, with a time to live of some minutes.
// Default: the cases Unreadable are skipped.
func WithCorrupt(corrupt func(ctx context.Context, d dedupe.Digest, kind Corruption) error) Option {
	return func(s *settings) { s.corrupt = corrupt }
}

// Corruption is a way in which what is stored under a digest is no record.
type Corruption uint8

const (
	// Foreign: something else altogether, by another program, of a type that records do not have.
	Foreign Corruption = iota + 1
	// Damaged: a record in which something is missing or makes no sense.
	Damaged
	// Newer: a record as a later version might write it.
	Newer
)

// String names the corruption.
func (c Corruption) String() string {
	switch c {
	case Foreign:
		return "Foreign"
	case Damaged:
		return "Damaged"
	case Newer:
		return "Newer"
	default:
		return "Unknown"
	}
}
