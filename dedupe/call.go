package dedupe

import "context"

// Call is one request on its way through guards, as an adapter presents it to [Do]. The engine
// decides what happens to it; the adapter carries it out in its protocol. A Call is used by one
// goroutine.
type Call interface {
	Request

	// Invoke runs the handler with ctx, at most once. What the handler answered stays with the
	// Call; a panic or Goexit passes through.
	Invoke(ctx context.Context)

	// Record is called before Invoke when a guard wants the answer. From then on nothing of the
	// answer may reach the client before Do returns, unless it cannot be kept anyway.
	Record()

	// Answer is called after Invoke when Record was. It returns the answer in the adapter's own
	// encoding, and what is to be done with it. With keep, the handler wants it kept whatever the
	// adapter's policy says; one that cannot be leaves a tombstone.
	Answer(keep bool) ([]byte, Verdict)

	// Replay gives an answer that Answer returned earlier, perhaps in another process or version,
	// to the client. Several requests may be given the same bytes: they must not be changed. An error
	// means that it cannot be read; nothing was sent then.
	Replay(answer []byte) error
}

// Verdict is what is to become of an answer.
type Verdict uint8

const (
	// VerdictRelease forgets the request, so that a repeat runs again.
	VerdictRelease Verdict = iota
	// VerdictKeep keeps the answer for repeats.
	VerdictKeep
	// VerdictTombstone keeps the knowledge that the request ran, without its answer.
	VerdictTombstone
)

// Do takes call through guards, the outermost first, and runs its handler if all of them let it.
// It returns nil when the handler ran or an earlier answer was replayed, and a [*Refusal] when a
// guard turned the request away. When Do returns, every answer to be kept has been saved or its
// saving has been given up to the background: the adapter may answer the client.
//
// The handler's context carries its [Lease], ends with ctx, and is cancelled with a cause that
// matches [ErrLeaseLost] when the lease is over.
func Do(ctx context.Context, guards []*Guard, call Call) error {
	if len(guards) == 0 {
		call.Invoke(ctx)
		return nil
	}
	return guards[0].pass(ctx, guards[1:], call)
}
