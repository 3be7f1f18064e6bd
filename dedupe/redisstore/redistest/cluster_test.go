package redistest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

func TestCluster(t *testing.T) {
	eachServer(t, func(t *testing.T, opts ...redistest.Option) {
		const masters = 3
		cluster := redistest.StartCluster(t, masters, opts...)
		if len(cluster.Nodes()) != masters || len(cluster.Addrs()) != masters {
			t.Fatalf("nodes %v at %v, want %d", cluster.Nodes(), cluster.Addrs(), masters)
		}
		client := cluster.Client()
		for i := range 100 {
			mustSet(t, client, fmt.Sprint("key", i), "value")
		}
		if size := cluster.DBSize(t.Context()); size != 100 {
			t.Errorf("%d keys, want 100", size)
		}
		for _, node := range cluster.Nodes() {
			keys := node.Client().DBSize(t.Context()).Val()
			if keys == 0 || keys == 100 {
				t.Errorf("%d keys are in node %s", keys, node.Addr())
			}
		}
		for slot, owner := range map[int]int{0: 0, 16383: 2, cluster.Slot("foo"): 12182 * masters / 16384} {
			if got := cluster.Owner(slot); got != cluster.Nodes()[owner] {
				t.Errorf("slot %d is owned by %s, not by %s", slot, got.Addr(), cluster.Addrs()[owner])
			}
		}
		t.Run("migration", func(t *testing.T) { testMigration(t, cluster) })
		t.Run("restart", func(t *testing.T) {
			cluster.Nodes()[1].Restart()
			redistest.Eventually(t, patience, func() bool {
				return client.Set(t.Context(), "foo", "value", 0).Err() == nil &&
					strings.Contains(cluster.Nodes()[1].Client().ClusterInfo(t.Context()).Val(), "cluster_state:ok")
			}, "the restarted node does not serve")
		})
	})
}

func testMigration(t *testing.T, cluster *redistest.Cluster) {
	ctx := t.Context()
	const present, absent = "{migrant}present", "{migrant}absent"
	client := cluster.Client()
	mustSet(t, client, present, "value")

	slot := cluster.Slot(present)
	from := cluster.Owner(slot)
	nodes := cluster.Nodes()
	to := nodes[(slices.Index(nodes, from)+1)%len(nodes)]
	ask := fmt.Sprintf("ASK %d %s", slot, to.Addr())

	cluster.BeginMigration(t, slot, from, to)
	expect(t, from.Client().Get(ctx, present), "value")
	expect(t, from.Client().Get(ctx, absent), ask)
	expect(t, to.Client().Get(ctx, present), fmt.Sprintf("MOVED %d %s", slot, from.Addr()))

	cluster.MoveKeys(t, slot, from, to)
	expect(t, from.Client().Get(ctx, present), ask)
	expect(t, client.Get(ctx, present), "value")
	if owner := cluster.Owner(slot); owner != from {
		t.Errorf("owned by %s before the migration is finished", owner.Addr())
	}

	mustSet(t, client, absent, "other")
	cluster.FinishMigration(t, slot, from, to)
	if owner := cluster.Owner(slot); owner != to {
		t.Errorf("owned by %s after the migration", owner.Addr())
	}
	for _, node := range nodes {
		if node != to {
			expect(t, node.Client().Get(ctx, present), fmt.Sprintf("MOVED %d %s", slot, to.Addr()))
		}
	}
	expect(t, to.Client().Get(ctx, present), "value")
	expect(t, client.Get(ctx, absent), "other")

	// What is left with the old owner moves in the end.
	mustSet(t, client, present, "again")
	cluster.BeginMigration(t, slot, to, from)
	cluster.FinishMigration(t, slot, to, from)
	expect(t, from.Client().Get(ctx, present), "again")
}

// expect checks the value or the error that a command has resulted in.
func expect(t *testing.T, command *redis.StringCmd, want string) {
	t.Helper()

	got, err := command.Result()
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%v: got %q, want %q", command.Args(), got, want)
	}
}
