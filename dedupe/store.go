package dedupe

import (
	"context"
	"time"
)

// Store keeps one record for each guarded key and grants each key to one owner at a time. The
// package storetest holds what every Store must do.
//
// All methods are safe for concurrent use. Each returns within the store's own budget, and by the
// deadline of ctx; a cancellation it may notice late, though within the budget. What was sent by
// then may still take effect. Each may be carried out twice with the same arguments and then has the
// result of having been carried out once, because clients send a command again when its reply is
// lost. Only the store's clock decides what has expired.
//
// A store may keep a waiting line for each key ([Claim.Waiter]). Where it does, whoever stands first in
// it becomes the owner as soon as the key is free: nobody else gets it in between.
//
// Errors: [ErrStoreUnavailable] joined with the cause when the store could not be asked, also
// because ctx is done; [ErrRecordUnreadable] when what is there is not a record this version can
// read; and [ErrLeaseLost] where a method says so. Nothing else, and never a conflict.
type Store interface {
	// Claim tries to make c.Token the owner of c.Digest. What it found is in the result's Status;
	// a conflict is not an error.
	Claim(ctx context.Context, c Claim) (Claimed, error)

	// Extend makes the lease of h end after lease from now, and keeps the claim's Lapse. It returns
	// [ErrLeaseLost] when h does not hold the key any more; it never brings back what has expired.
	Extend(ctx context.Context, h Holder, lease time.Duration) error

	// Complete ends the lease of h and keeps answer for retention, together with the fingerprint
	// that came with the claim. A nil answer leaves a tombstone: the record says that the request
	// ran, and nothing else. It returns [ErrLeaseLost] when h does not hold the key any more.
	Complete(ctx context.Context, h Holder, answer []byte, retention time.Duration) error

	// Release ends the lease of h and removes the record, also one whose lease ended and that stays
	// for its Lapse; or, with a line, makes the first in it the owner. When h stands in the line it is
	// taken out. When the record is gone already that is a success. A record that is completed,
	// or another's, is left alone and [ErrLeaseLost] returned; a Release carried out twice returns
	// that too when another owner came in between, so it is no sign of trouble.
	Release(ctx context.Context, h Holder) error
}

// FencesPerGrant is how many fences the owner of a key has with each grant: the one that it is told
// and those above it, up to this many, and no more than one for each µs that it has the key. It needs
// them where it hands the key on to another request of its process without the store. The fence of the
// next grant is above all that it used.
const FencesPerGrant = 256

// Waiter is told when the turn of a claim in the line comes. Methods are called from any goroutine,
// late or more than once, and return at once.
type Waiter interface {
	// Wake says that h owns the key now, or, with a grant whose Fence is 0, that it should claim
	// again. It reports whether h is still wanted; if not, the store releases it.
	Wake(h Holder, g Grant) (wanted bool)
}

// Grant is what a [Waiter] is told.
type Grant struct {
	// Fence is as in [Claimed]; 0 if nothing is granted.
	Fence uint64

	// Since is a moment, by this process's monotonic clock, before which the grant was not made.
	Since time.Time

	// Lease is how long the lease lasts from when the grant was made, until it is extended. Stores
	// keep it short, because a grantee may have died in the line. Without a grant it is how
	// long to wait before claiming again.
	Lease time.Duration
}

// Holder is one owner of one key.
type Holder struct {
	Digest Digest
	Token  Token
}

// Claim asks for a key.
type Claim struct {
	Holder

	// Fingerprint is kept with the claim and compared before anything else is looked at.
	Fingerprint Fingerprint

	// Lease is how long the key is granted for, from when the store carries out the claim.
	Lease time.Duration

	// Lapse is how long the record stays when its lease ends without Extend, Complete or Release.
	// While it stays, others find [StatusLapsed]. 0 frees the key at the end of the lease.
	Lapse time.Duration

	// Waiter asks for a place in the key's line, at its end, if another owns the key. A claim that
	// has a place keeps it when it is sent again. It is nil for those that do not wait, and ignored
	// by stores without lines.
	Waiter Waiter

	// Yields is the token of an owner whose lease ends with this claim, as by Release: the next in
	// the line becomes the owner, and this claim itself only if there is none. It is zero if there
	// is no such owner.
	Yields Token
}

// Status is what a claim found.
type Status uint8

const (
	// StatusGranted: the claim's token owns the key.
	StatusGranted Status = iota + 1
	// StatusHeld: another token owns it.
	StatusHeld
	// StatusMismatch: there is a record, and its fingerprint is another one.
	StatusMismatch
	// StatusCompleted: the request ran; the answer is there unless it is a tombstone.
	StatusCompleted
	// StatusLapsed: an owner's lease ended without a result, and its claim set Lapse. Its owner
	// finds this too.
	StatusLapsed
)

// String names the status.
func (s Status) String() string {
	switch s {
	case StatusGranted:
		return "granted"
	case StatusHeld:
		return "held"
	case StatusMismatch:
		return "mismatch"
	case StatusCompleted:
		return "completed"
	case StatusLapsed:
		return "lapsed"
	default:
		return "unknown"
	}
}

// Claimed is the result of [Store.Claim].
type Claimed struct {
	Status Status

	// Fence rises with every grant of the key: it is the store's time in µs, or the previous one plus
	// [FencesPerGrant] if the clock is not past that one. When the record of the previous grant is gone, its time is what makes the fence rise, so the store's
	// clock must not be set back by more than a key lies idle. It is set with StatusGranted.
	Fence uint64

	// Remaining is the rest of the holder's lease with StatusHeld, and the rest of the record's
	// time with StatusLapsed.
	Remaining time.Duration

	// Backlog is how long those in line before the claim are likely to take, with StatusHeld; 0 if
	// that is not known.
	Backlog time.Duration

	// Queued says, with StatusHeld, that the claim has a place in the key's line and its Waiter will
	// be told. Messages get lost: a Waiter that hears nothing claims again after Remaining.
	Queued bool

	// Answer is set with StatusCompleted. nil is a tombstone, an empty answer is not nil.
	Answer []byte
}
