// Package waiting holds the tests of the waiting line: of those who wait for a key that another process
// has, over real servers and clusters, with processes that are stopped and killed, connections that are
// cut or fall silent, and words that are lost.
//
// What they hold the store and the engine to, whatever happens:
//
//   - at most one holder at a time, and fences that rise over all processes
//   - first come, first served, and nobody passed over for long
//   - who is dead or gone does not hold up those behind it for longer than the short lease of a grant
//   - no waiter sleeps on beside a free key: what it missed it asks for
//   - nothing is left behind, in Redis or in the process
package waiting
