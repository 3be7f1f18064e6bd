package redistest

import (
	"context"
	"fmt"
	"testing"
	"time"
)

const (
	// migrationBatch is how many keys one MIGRATE moves.
	migrationBatch = 100

	// migrationTimeout bounds the time until all nodes know a slot's new owner.
	migrationTimeout = 10 * time.Second
)

// BeginMigration declares that slot is on its way between two nodes. From now on
// the old owner answers commands on keys of the slot that it has, and sends
// clients on with an ASK redirection for those it has not.
func (c *Cluster) BeginMigration(tb testing.TB, slot int, from, to *Server) {
	tb.Helper()

	c.setSlot(tb, to, slot, "IMPORTING", c.id(tb, from))
	c.setSlot(tb, from, slot, "MIGRATING", c.id(tb, to))
}

// MoveKeys moves the keys that the old owner of a migrating slot has to the new
// one, so that it has an ASK redirection for each.
func (c *Cluster) MoveKeys(tb testing.TB, slot int, from, to *Server) {
	tb.Helper()

	ctx := context.Background()
	for {
		keys, err := from.client.ClusterGetKeysInSlot(ctx, slot, migrationBatch).Result()
		if err != nil {
			tb.Fatalf("%s: CLUSTER GETKEYSINSLOT %d: %v", from.Addr(), slot, err)
		}
		if len(keys) == 0 {
			return
		}
		command := []any{"MIGRATE", loopback, to.port, "", 0, controlTimeout.Milliseconds(), "KEYS"}
		for _, key := range keys {
			command = append(command, key)
		}
		err = from.client.Do(ctx, command...).Err()
		if err != nil {
			tb.Fatalf("%s: MIGRATE to %s: %v", from.Addr(), to.Addr(), err)
		}
	}
}

// FinishMigration moves the keys that are left and makes the new node the owner
// of slot. It returns when all nodes know. Clients learn it later, from a MOVED
// redirection.
func (c *Cluster) FinishMigration(tb testing.TB, slot int, from, to *Server) {
	tb.Helper()

	c.MoveKeys(tb, slot, from, to)
	owner := c.id(tb, to)
	// The new owner first: the slot has always one that way.
	c.setSlot(tb, to, slot, "NODE", owner)
	c.setSlot(tb, from, slot, "NODE", owner)

	err := poll(migrationTimeout, func() (bool, error) {
		for _, node := range c.nodes {
			known, err := ownerOf(node, slot)
			if err != nil {
				return false, err
			}
			if known != owner {
				return false, fmt.Errorf("%w: to node %s the owner is %s", errNotReady, node.Addr(), known)
			}
		}
		return true, nil
	})
	if err != nil {
		tb.Fatalf("migrate slot %d to %s: %v", slot, to.Addr(), err)
	}
}

func (c *Cluster) setSlot(tb testing.TB, node *Server, slot int, state, id string) {
	tb.Helper()

	err := node.client.Do(context.Background(), "CLUSTER", "SETSLOT", slot, state, id).Err()
	if err != nil {
		tb.Fatalf("%s: CLUSTER SETSLOT %d %s %s: %v", node.Addr(), slot, state, id, err)
	}
}

// id returns the id that the cluster knows a node by.
func (c *Cluster) id(tb testing.TB, node *Server) string {
	tb.Helper()

	for i, member := range c.nodes {
		if member == node {
			return c.ids[i]
		}
	}
	tb.Fatalf("%s is no node of the cluster", node.Addr())

	return ""
}
