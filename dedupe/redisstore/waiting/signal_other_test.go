//go:build !unix

package waiting

import "testing"

func (c *child) pause(t *testing.T) { t.Skip("processes cannot be paused here") }

func (c *child) resume(*testing.T) {}
