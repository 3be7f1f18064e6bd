// Package dedupe keeps web services from doing the same thing twice. It is the engine behind
// Interlock's middleware: what decides whether a request may run, on any number of replicas.
//
// A [Guard] takes a key out of each request and a lease on it in a [Store] while the handler runs.
//
//   - [Serialize]: requests with the same key run one at a time. Two writers of one account.
//   - [Once]: a request runs once, and repeats get its answer. A payment that is sent twice.
//
// They compose: Once outside, Serialize inside. Adapters (package httpmw) put them in front of
// handlers; [Guard.Run] and [Fetch] use them without requests.
//
// # What is promised
//
// While its lease is valid, at most one holder of a key; a fence that only rises; and, for Once, the
// first answer given again to every repeat within the retention.
//
// What is not promised: exactly-once effects. A holder that stalls past its lease can still be running
// when the next one starts. Its context is cancelled before that, with a cause that matches
// [ErrLeaseLost]; [Lease.Fence] is how a database refuses it if it does not look.
//
// # Leases
//
// A lease is renewed every third of its length, by a timer that costs nothing before that. Its
// holder counts it from before the request to the store was sent, by a monotonic clock, and stops a
// twentieth early; the store counts it from when it carried out the request. So the holder is told
// before anybody else is let in, whatever the network does and however clocks are set.
//
// A handler that returns, panics or calls runtime.Goexit settles its lease exactly then, on a
// context of its own: a client that hangs up costs neither the answer nor the key.
//
// # Waiting
//
// With [WithWait], requests wait for a key in the order in which they came: within a process exactly,
// between processes as the store keeps the line. A process has one contender at the store for each key;
// the others line up in memory, and the key goes from one to the next without the store, each with a
// higher fence, until those that were there when the store granted it have had their turn. Duplicates
// of a request in flight in the same process cost the store nothing, waiting or refused.
//
// # Errors
//
// A guard that turns a request away returns a [*Refusal], which matches one sentinel for each
// [Outcome] under errors.Is. No error contains a key.
//
// # Concurrency
//
// Guards, leases and stores are safe for concurrent use. Key functions, options' functions and
// observers are called by many goroutines at once.
package dedupe
