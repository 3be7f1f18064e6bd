// Package worker is the part of a measurement that runs in processes of its own: it is given a [Job]
// on its standard input, and leaves a [Result] on its standard output.
package worker

import "time"

// Job is what one process does.
type Job struct {
	Servers []string // one address; or several, of a cluster
	Process int      // the number of this process among those that run at the same time

	// Goroutines each carry out operations one after the other, for Duration or, if that is 0,
	// Operations times. An operation that has begun is finished.
	Goroutines int
	Duration   time.Duration
	Operations int

	// Grace is how long after the end of Duration, or without one after the start, operations are given
	// up. A waiter that its library forgot would else keep everybody waiting.
	Grace time.Duration

	// Pace is the time from one goroutine's first operation to the next one's; 0 starts all at once.
	Pace time.Duration
	// Delay is how long after the common start this process starts.
	Delay time.Duration

	Lock    *Lock    // the operation is to run something under a lock
	Handler *Handler // the operation is to serve a request
}

// Lock is an operation: run something under a lock.
type Lock struct {
	Contender string
	Key       string        // the one key of all operations; "" gives each operation its own
	Hold      time.Duration // how long it is held; 0 does nothing while holding it
	UntilLost bool          // hold until the library says that the lock is lost, or Hold is over
	Lease     time.Duration // 0: the contender's own
	Watch     bool          // see contender.Setting
	Apart     bool          // each goroutine has a lock object and clients of its own, like a process
	Board     string        // where entering and leaving is written down
	Slot      int           // of the board
}

// Handler is an operation: serve a request.
type Handler struct {
	Framework string // one of Frameworks
	Variant   string // one of Variants
	Keys      string // what the keys of this measurement begin with

	// First numbers the first request's key; replays choose among the keys from First on at random,
	// Population many.
	First, Population int

	Answered bool // the requests to be replayed were answered by an earlier job

	AutoPipeline bool // the store's commands share round trips
	Answer       int  // size of the answer's body in bytes; 0 for a small one
}

// Turn is one operation. Times are those of package clock.
type Turn struct {
	Goroutine int32
	Key       uint64 // tells keys apart
	Arrived   int64  // before anything was asked for
	Entered   int64  // the lock is held, or the handler was entered; 0 for a replay
	Left      int64  // about to release
	Done      int64  // everything returned
}

// Result is what one process did.
type Result struct {
	Began      int64 // by package clock; a busy machine may start a process late
	Turns      []Turn
	Errors     []string // the first few
	Failed     int      // how many operations failed
	Stalled    int      // how many were given up long after the end
	Stall      int64    // the longest that one of those had waited
	Runs       int64    // how often a handler ran
	Commands   int64    // sent to the server from the start to the end
	CPU        time.Duration
	Allocation uint64 // objects
}

// Ready is what a worker says when everything is connected.
type Ready struct{ Error string }

// Start is what it is then told.
type Start struct{ At int64 } // by package clock
