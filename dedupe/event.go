package dedupe

import "time"

// EventKind says what an [Event] is about.
type EventKind uint8

const (
	// EventDecided: a guard decided about a request. Outcome says how; with StoreUnavailable under
	// WithFailOpen the handler runs all the same, and Open is true.
	EventDecided EventKind = iota + 1
	// EventSettled: a handler is done. Held says how long the key was held. Err is nil when the store
	// knows, or the next in line of this process has the key, and otherwise why the store could not be
	// told, or that the lease was lost before.
	EventSettled
	// EventSettleFailed: a handler is done, and the store could not be told (Err). The engine
	// tries again while the lease lasts.
	EventSettleFailed
	// EventRenewFailed: a renewal failed (Err). The engine tries again while the lease lasts.
	EventRenewFailed
	// EventLeaseLost: a lease ended under a running handler, whose context is now cancelled.
	EventLeaseLost
)

// String names the kind.
func (k EventKind) String() string {
	switch k {
	case EventDecided:
		return "decided"
	case EventSettled:
		return "settled"
	case EventSettleFailed:
		return "settle failed"
	case EventRenewFailed:
		return "renew failed"
	case EventLeaseLost:
		return "lease lost"
	default:
		return "unknown"
	}
}

// Event tells an observer ([WithObserver]) what a guard did. It never carries a key.
type Event struct {
	Kind      EventKind
	Guard     string        // the guard's name
	Operation string        // the request's operation
	Outcome   Outcome       // with EventDecided
	Open      bool          // with EventDecided: the handler runs without the guard
	Fence     uint64        // of the first key, once granted
	Waited    time.Duration // with EventDecided: from the first claim to the decision
	Held      time.Duration // with EventSettled and EventLeaseLost: since the key was granted
	Err       error         // what went wrong
}
