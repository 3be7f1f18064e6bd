package waiting

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// ear is what a client hears on its subscriptions: the server goes on telling, and the client's other
// connections work, but chosen messages get lost, or everything from some moment on.
type ear struct {
	mu     sync.Mutex
	losing func(message string) bool
	lost   int
	dialed int // connections
	silent int // how many of them, the first ones, nothing is heard on any more
}

// silence has nothing heard any more on the connections that there are. New ones are not affected.
func (e *ear) silence() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.silent = e.dialed
}

// lose has messages lost that lost says yes to.
func (e *ear) lose(losing func(message string) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.losing = losing
}

// count returns how many were lost.
func (e *ear) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lost
}

// hears reports whether a message on the connection of this number is heard.
func (e *ear) hears(number int, message string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if number > e.silent && (e.losing == nil || !e.losing(message)) {
		return true
	}
	e.lost++
	return false
}

// words are the messages with a word about the key.
func words(word string) func(string) bool {
	return func(message string) bool {
		return strings.HasPrefix(message, ">") && strings.Contains(message, word+" ")
	}
}

// dialer returns what a client connects with; nil of a nil ear, which hears everything.
func (e *ear) dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	if e == nil {
		return nil
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.dialed++
		return &earConn{Conn: conn, ear: e, number: e.dialed, reader: bufio.NewReader(conn)}, nil
	}
}

// earConn is a connection of a client that has an ear. It is an ordinary one until it subscribes.
type earConn struct {
	net.Conn

	ear        *ear
	number     int
	subscribed atomic.Bool
	reader     *bufio.Reader
	rest       []byte // of the message that is being read
}

func (c *earConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("subscribe\r\n")) {
		c.subscribed.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *earConn) Read(p []byte) (int, error) {
	if !c.subscribed.Load() {
		return c.reader.Read(p)
	}
	for len(c.rest) == 0 {
		var message bytes.Buffer
		if err := readMessage(c.reader, &message); err != nil {
			return 0, err
		}
		if c.ear.hears(c.number, message.String()) {
			c.rest = message.Bytes()
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// readMessage reads a message of the Redis protocol, of those kinds that come over a subscription.
func readMessage(r *bufio.Reader, into *bytes.Buffer) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	into.WriteString(line)
	size, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '$':
		if err == nil && size >= 0 {
			_, err = io.CopyN(into, r, int64(size)+2)
		}
		return err
	case '>', '*':
		for range size {
			if err := readMessage(r, into); err != nil {
				return err
			}
		}
	}
	return nil
}
