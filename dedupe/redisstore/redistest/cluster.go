package redistest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	slots = 16384

	// clusterTimeout bounds the time until a cluster serves. It takes a little
	// over two seconds, for which a new master always refuses to.
	clusterTimeout = 30 * time.Second

	// nodeTimeout is when a node that does not answer counts as failing, in
	// milliseconds: soon enough to wait for in a test, and late enough for a
	// busy machine not to look like a failure.
	nodeTimeout = 2000
)

// Cluster is a Redis Cluster of masters without replicas, over which the slots
// are evenly distributed. When a node is stopped or paused the whole cluster
// refuses its service two seconds later, as is the default.
type Cluster struct {
	tb    testing.TB
	nodes []*Server
	ids   []string // by which the nodes know each other, in the order of nodes
}

// StartCluster runs a cluster until the end of the test, and returns when all
// nodes know each other and serve. That takes some three seconds, so tests do
// well to share one.
func StartCluster(tb testing.TB, masters int, opts ...Option) *Cluster {
	tb.Helper()

	c := &Cluster{tb: tb}
	asNode := func(s *setup) {
		s.port = freeClusterPort
		s.directives = append(s.directives, "cluster-enabled yes", fmt.Sprintf("cluster-node-timeout %d", nodeTimeout))
	}
	for range masters {
		c.nodes = append(c.nodes, Start(tb, append([]Option{asNode}, opts...)...))
	}
	for i := range c.nodes {
		err := c.join(i)
		if err != nil {
			tb.Fatalf("cluster node %s: %v", c.nodes[i].Addr(), err)
		}
	}
	err := poll(clusterTimeout, c.serves)
	if err != nil {
		tb.Fatalf("cluster: %v", err)
	}

	return c
}

// join gives node i its share of the slots, and introduces it to those before.
func (c *Cluster) join(i int) error {
	ctx := context.Background()
	node := c.nodes[i].client

	// Nodes that come with different epochs have no conflict to settle.
	err := node.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err()
	if err != nil {
		return err
	}
	first, end := i*slots/len(c.nodes), (i+1)*slots/len(c.nodes)
	err = node.ClusterAddSlotsRange(ctx, first, end-1).Err()
	if err != nil {
		return err
	}
	for _, other := range c.nodes[:i] {
		err = node.ClusterMeet(ctx, loopback, fmt.Sprint(other.port)).Err()
		if err != nil {
			return err
		}
	}
	id, err := node.ClusterMyID(ctx).Result()
	c.ids = append(c.ids, id)

	return err
}

// serves reports whether every node knows all others and considers the cluster
// able to serve all slots.
func (c *Cluster) serves() (bool, error) {
	for _, node := range c.nodes {
		info, err := node.client.ClusterInfo(context.Background()).Result()
		if err != nil {
			return false, err
		}
		for field, wanted := range map[string]string{
			"cluster_state":       "ok",
			"cluster_slots_ok":    fmt.Sprint(slots),
			"cluster_known_nodes": fmt.Sprint(len(c.nodes)),
			"cluster_size":        fmt.Sprint(len(c.nodes)),
		} {
			got := infoField(info, field)
			if got != wanted {
				return false, fmt.Errorf("%w: node %s has %s %q, not %q", errNotReady, node.Addr(), field, got, wanted)
			}
		}
	}

	return true, nil
}

// Nodes returns the cluster's nodes.
func (c *Cluster) Nodes() []*Server { return append([]*Server(nil), c.nodes...) }

// Addrs returns the nodes' addresses, each as host:port.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, node := range c.nodes {
		addrs[i] = node.Addr()
	}

	return addrs
}

// Client returns a new cluster client with stock options, which is closed at the
// end of the test.
func (c *Cluster) Client() *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	c.tb.Cleanup(func() { _ = client.Close() })

	return client
}

// DBSize returns the number of keys in all nodes.
func (c *Cluster) DBSize(ctx context.Context) int64 {
	c.tb.Helper()

	var size int64
	for _, node := range c.nodes {
		keys, err := node.client.DBSize(ctx).Result()
		if err != nil {
			c.tb.Fatalf("%s: DBSIZE: %v", node.Addr(), err)
		}
		size += keys
	}

	return size
}

// Slot returns the hash slot of a key.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()

	slot, err := c.nodes[0].client.ClusterKeySlot(context.Background(), key).Result()
	if err != nil {
		c.tb.Fatalf("CLUSTER KEYSLOT %s: %v", key, err)
	}

	return int(slot)
}

// Owner returns the node that serves a slot, by its own account.
func (c *Cluster) Owner(slot int) *Server {
	c.tb.Helper()

	for i, node := range c.nodes {
		owner, err := ownerOf(node, slot)
		if err != nil {
			c.tb.Fatalf("%s: owner of slot %d: %v", node.Addr(), slot, err)
		}
		if owner == c.ids[i] {
			return node
		}
	}
	c.tb.Fatalf("slot %d has no owner", slot)

	return nil
}

// ownerOf returns the id of the node that, as far as node knows, owns the slot.
func ownerOf(node *Server, slot int) (string, error) {
	shards, err := node.client.ClusterShards(context.Background()).Result()
	if err != nil {
		return "", err
	}
	for _, shard := range shards {
		for _, r := range shard.Slots {
			if r.Start <= int64(slot) && int64(slot) <= r.End && len(shard.Nodes) > 0 {
				return shard.Nodes[0].ID, nil
			}
		}
	}

	return "", fmt.Errorf("%w: slot %d has no owner", errNotReady, slot)
}
