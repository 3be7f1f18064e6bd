package redistest_test

import (
	"testing"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

func TestSentinel(t *testing.T) {
	eachServer(t, func(t *testing.T, opts ...redistest.Option) {
		sentinel := redistest.StartSentinel(t, opts...)
		if n := len(sentinel.Sentinels()); n != 3 || len(sentinel.Addrs()) != n {
			t.Errorf("%d sentinels at %v, want 3", n, sentinel.Addrs())
		}
		first := sentinel.Master()
		if first != sentinel.Servers()[0] {
			t.Errorf("the master is %s, not the one started as such", first.Addr())
		}
		client := sentinel.Client()
		mustSet(t, client, "key", "first")
		expect(t, first.Client().Get(t.Context(), "key"), "first")
		if n := client.Wait(t.Context(), 1, patience).Val(); n != 1 {
			t.Fatalf("%d replicas have the key", n)
		}

		second := sentinel.Failover(t)
		if second == first || second != sentinel.Master() {
			t.Errorf("the master is %s after a failover from %s", second.Addr(), first.Addr())
		}
		redistest.Eventually(t, patience, func() bool {
			return client.Set(t.Context(), "key", "second", 0).Err() == nil &&
				second.Client().Get(t.Context(), "key").Val() == "second"
		}, "the client does not follow the failover")

		// The old master has to have become a replica for being promoted again.
		redistest.Eventually(t, patience, func() bool {
			return first.Client().Get(t.Context(), "key").Val() == "second"
		}, "the old master does not follow the new one")
		second.Kill()
		if third := sentinel.AwaitPromotion(t, second); third != first {
			t.Errorf("the master is %s after the death of %s", third.Addr(), second.Addr())
		}
		redistest.Eventually(t, patience, func() bool {
			return client.Set(t.Context(), "key", "third", 0).Err() == nil
		}, "the client does not follow the promotion")
		expect(t, first.Client().Get(t.Context(), "key"), "third")
	})
}
