// Package wire counts the commands that clients send, where they leave the process.
//
// The server keeps no such number: its statistics count what a script calls like what a client
// sends. MONITOR can tell them apart, but slows down the server that is to be measured. So each
// client under measurement dials through a [Counter], which reads along what is written: only the
// headers of the protocol, since payloads are skipped by their length.
package wire

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Counter counts the commands on all connections that it dialled. It is safe for concurrent use.
type Counter struct{ commands atomic.Int64 }

// Commands returns how many commands have been written: each of a pipeline, and a script as one.
// Greetings of new connections count.
func (c *Counter) Commands() int64 { return c.commands.Load() }

// Dial connects as go-redis does by default.
func (c *Counter) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 5 * time.Second, KeepAlive: 5 * time.Minute}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("dial %s %s: not a TCP connection", network, address)
	}
	return &connection{TCPConn: tcp, counter: c}, nil
}

// connection embeds the concrete type because clients look for its other methods: go-redis checks
// an idle connection by its descriptor.
type connection struct {
	*net.TCPConn
	counter *Counter

	mu     sync.Mutex
	parser parser
}

// Write counts the commands whose first line ends in p.
func (c *connection) Write(p []byte) (int, error) {
	c.mu.Lock()
	n := c.parser.feed(p)
	c.mu.Unlock()
	c.counter.commands.Add(int64(n))
	return c.TCPConn.Write(p)
}

// parser follows a stream of requests: arrays ("*2\r\n") of strings ("$3\r\nGET\r\n").
type parser struct {
	skip   int  // bytes of payload still to come
	number int  // of the line being read
	array  bool // the line is an array's
}

// feed takes the next bytes of the stream and returns how many requests begin in them.
func (p *parser) feed(b []byte) (requests int) {
	for len(b) > 0 {
		if p.skip > 0 {
			n := min(p.skip, len(b))
			p.skip -= n
			b = b[n:]
			continue
		}
		switch c := b[0]; c {
		case '*', '$':
			p.array, p.number = c == '*', 0
		case '\r':
		case '\n':
			if p.array {
				requests++
			} else {
				p.skip = p.number + len("\r\n")
			}
		default:
			p.number = p.number*10 + int(c-'0')
		}
		b = b[1:]
	}
	return requests
}
