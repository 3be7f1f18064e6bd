package dedupe

import (
	"context"
	"encoding/json"
	"errors"
)

// Run runs fn under the guard, for work that no request brings: a scheduled job, a message from a
// queue.
//
// Under a Serialize, fn runs while no other holder of key does; when the key is held for longer
// than the guard waits, Run returns an error that matches [ErrLocked]. Under a Once, fn runs unless
// an earlier Run with the same key returned nil within the retention; then Run returns nil at
// once. An error of fn is returned as it is and is not kept: the next Run tries again. Keys of a
// Once are shared by all jobs on the store; keep those of different jobs apart with
// [WithOperation].
//
// fn's context carries the [Lease] and is cancelled when that is lost. Key functions other than
// the caller's are not asked; options for requests ([WithAlso], [WithSkip]) have no effect.
func (g *Guard) Run(ctx context.Context, key string, fn func(context.Context) error) error {
	j := &job[struct{}]{ctx: ctx, work: func(ctx context.Context) (struct{}, error) {
		return struct{}{}, fn(ctx)
	}}
	_, err := j.under(g, key)
	return err
}

// Fetch returns the value of key, which compute makes: once within the guard's retention, in one
// of all processes, while the others wait for it as long as the guard's [WithWait] says and get
// the same value. Whoever waits in vain gets an error that matches [ErrInFlight]. An error of
// compute is returned to its caller and not kept; one of those that wait then computes.
//
// Values are kept as JSON. The retention is how fresh they are. A kept value that does not fit T is
// refused with [ErrAnswerUnavailable]: when T changes, give the guard another [WithOperation]. guard
// must be a [Once].
func Fetch[T any](ctx context.Context, guard *Guard, key string, compute func(context.Context) (T, error)) (T, error) {
	j := &job[T]{ctx: ctx, work: compute, keepsValue: true}
	if guard.kind != kindOnce {
		return j.value, errFetchNeedsOnce
	}
	return j.under(guard, key)
}

var errFetchNeedsOnce = errors.New("dedupe.Fetch: the guard is a Serialize, which keeps no values; give a Once")

// job is a [Call] without a request.
type job[T any] struct {
	ctx        context.Context //nolint:containedctx // Request.Context has to return it
	work       func(context.Context) (T, error)
	keepsValue bool

	value  T
	err    error
	answer []byte
}

func (j *job[T]) under(g *Guard, key string) (T, error) {
	if key == "" {
		return j.value, g.refuseRequest(j, &Refusal{Outcome: KeyMissing, Cause: errNoKey})
	}
	if err := g.admit(j.ctx, nil, j, []string{key}); err != nil {
		return j.value, err
	}
	return j.value, j.err
}

// Invoke runs the work and encodes its value.
func (j *job[T]) Invoke(ctx context.Context) {
	if j.value, j.err = j.work(ctx); j.err != nil || !j.keepsValue {
		return
	}
	j.answer, j.err = json.Marshal(j.value)
}

func (j *job[T]) Record() {}

func (j *job[T]) Answer(bool) ([]byte, Verdict) {
	if j.err != nil {
		return nil, VerdictRelease
	}
	return j.answer, VerdictKeep
}

func (j *job[T]) Replay(answer []byte) error {
	if !j.keepsValue {
		return nil
	}
	var value T // so that one that does not fit leaves nothing behind
	if err := json.Unmarshal(answer, &value); err != nil {
		return err
	}
	j.value = value
	return nil
}

func (j *job[T]) Context() context.Context     { return j.ctx }
func (j *job[T]) Operation() string            { return "job" }
func (j *job[T]) Safe() bool                   { return false }
func (j *job[T]) Header(string) []string       { return nil }
func (j *job[T]) Param(string) (string, error) { return "", nil }
func (j *job[T]) Field(string) (string, error) { return "", nil }
func (j *job[T]) Payload() (Payload, error)    { return Payload{}, nil }
func (j *job[T]) Value(key any) any            { return j.ctx.Value(key) }
