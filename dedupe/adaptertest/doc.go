// Package adaptertest holds what every adapter must do: one table of scenarios, which each adapter's
// test runs through a real server and a real client of its framework. What they have in common is
// that the same guards and key functions give the same outcomes, whichever framework a request comes
// through.
//
// An adapter's test describes the framework by an [Adapter] and calls [Run]:
//
//	func TestAdapter(t *testing.T) {
//		adaptertest.Run(t, adaptertest.Adapter{
//			Serve:    serve,
//			Caller:   keyfuncs.Value(callerKey{}),
//			Refusals: map[dedupe.Outcome]string{dedupe.InFlight: "409 Conflict", …},
//			Failures: []adaptertest.Failure{{Name: "NotFound", Status: "404 Not Found", Kept: true}, …},
//		}, adaptertest.Stores())
//	}
//
// Each scenario states how often the handler runs, the outcome of each request, and what the client
// sees. They run in parallel, each with a server and keys of its own: stores may be shared and need no
// cleaning. Nothing depends on the machine being quick; what has to happen is waited for, and a
// scenario that waits in vain fails. A store of your own needs a budget for each call that a loaded
// machine keeps to.
package adaptertest
