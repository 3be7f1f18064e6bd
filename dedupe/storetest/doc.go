// Package storetest holds what every [dedupe.Store] must do. Whoever writes a store calls [Run] in a
// test of its own, and has a store that guards can rely on when it passes:
//
//	func TestStore(t *testing.T) {
//		client := connect(t)
//		storetest.Run(t, func(t *testing.T) dedupe.Store {
//			return mystore.New(client)
//		},
//			storetest.WithTTLs(func(ctx context.Context, d dedupe.Digest) (time.Duration, bool, error) {
//				return client.TTL(ctx, mystore.Key(d))
//			}),
//			storetest.WithCorrupt(func(ctx context.Context, d dedupe.Digest, kind storetest.Corruption) error {
//				return client.Put(ctx, mystore.Key(d), damage[kind])
//			}),
//		)
//	}
//
// All cases run at the same time on one store, each with keys of its own that no other run repeats: a
// store that is shared, or keeps what it has between runs, needs no cleaning. What a case leaves
// behind is gone within minutes.
//
// The suite runs in real time and takes a few seconds. Nothing in it depends on the machine being
// quick: what must not happen early is measured from before the request was sent, and what must
// happen is waited for. The store has to be able to afford the same: open it with a budget for each
// call that a loaded machine keeps to, seconds rather than the 250 ms of production.
//
// Of a store that keeps waiting lines ([dedupe.Claim].Waiter) the cases Line, Yield and Turn are
// about those. They ask for a place until there is one, and skip themselves where none is ever given:
// give [WithLines] so that they cannot.
//
// A store whose time can be read per record should be given [WithTTLs], and one whose records others
// can write [WithCorrupt]. Without them the cases TTL and Unreadable are skipped, and say so.
package storetest
