package redistest

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// controlTimeout bounds a command by which this package controls a server.
const controlTimeout = 5 * time.Second

// controlClient is the client through which this package talks to a server. It
// knows its own connections, to tell them from those of the code under test.
type controlClient struct {
	*redis.Client

	own sync.Map // local addresses of its connections
}

func newControlClient(addr string) *controlClient {
	c := &controlClient{}
	c.Client = redis.NewClient(&redis.Options{
		Addr:            addr,
		Protocol:        2,
		DisableIdentity: true,
		PoolSize:        1,
		MaxRetries:      -1,
		DialerRetries:   1,
		DialTimeout:     controlTimeout,
		ReadTimeout:     controlTimeout,
		WriteTimeout:    controlTimeout,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err == nil {
				c.own.Store(conn.LocalAddr().String(), nil)
			}
			return conn, err
		},
	})

	return c
}

// owns reports whether the connection from addr was made by this client.
func (c *controlClient) owns(addr string) bool {
	_, found := c.own.Load(addr)
	return found
}

// infoField returns the value of a field in an INFO reply, or "".
func infoField(info, field string) string {
	for line := range strings.Lines(info) {
		name, value, found := strings.Cut(strings.TrimSpace(line), ":")
		if found && name == field {
			return value
		}
	}

	return ""
}
