// Package memstore keeps the records of package dedupe in memory, for tests and for programs that
// run as a single process. It guards nothing between processes and forgets everything when the
// process ends; a service with replicas needs a store that they share.
//
// There are no goroutines and no timers: every call purges a few of the records whose time is over,
// so that nothing stays for a key longer than its record, given further calls. The store therefore
// works inside a testing/synctest bubble and follows the bubble's clock. A store is to be used with
// one clock only: make it inside the bubble in which it is used.
//
// Time is measured with the monotonic clock, so that a step of the wall clock moves no lease. The
// wall clock is seen in fences alone, and they rise whatever it does.
package memstore
