package redistest

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/proto"
)

// link is a client's connection together with the one to the server. Requests
// and replies are passed on by a goroutine each.
type link struct {
	proxy  *Proxy
	client net.Conn
	ctx    context.Context // ends with the link
	cancel context.CancelFunc

	mu      sync.Mutex
	server  net.Conn   // nil until dialled
	pending []*Rule    // of each request that the server has to answer, oldest first
	settled *sync.Cond // signals that there is one less, or that the link has ended

	// What the client is to get, which is up to the goroutine that answers.
	previous string // the server's last reply
	silent   bool
	shifted  bool
}

func newLink(p *Proxy, client net.Conn) *link {
	l := &link{proxy: p, client: client}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.settled = sync.NewCond(&l.mu)

	return l
}

// run passes the traffic on until one side closes its connection.
func (l *link) run() {
	defer l.close()

	err := l.proxy.gate.pass(l.ctx.Done(), func() error { return nil })
	if err != nil {
		return
	}
	server, err := (&net.Dialer{}).DialContext(l.ctx, "tcp", l.proxy.upstream)
	if err != nil || !l.attach(server) {
		return
	}

	var replies sync.WaitGroup
	replies.Go(func() { l.end(l.passReplies(bufio.NewReader(server))) })
	l.end(l.passRequests(bufio.NewReader(l.client)))
	replies.Wait()
}

// attach takes the connection to the server on, unless the link was closed.
func (l *link) attach(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.ctx.Err() != nil {
		_ = server.Close()
		return false
	}
	l.server = server

	return true
}

// end closes the link because one direction has ended.
func (l *link) end(err error) {
	if errors.Is(err, errFrame) || errors.Is(err, proto.ErrProtocol) || errors.Is(err, proto.ErrUnexpected) {
		l.proxy.tb.Errorf("proxy for %s: %v", l.proxy.upstream, err)
	}
	_ = l.cut()
}

// cut closes the link, and returns errLinkClosed. Through a black hole, neither
// side hears of that.
func (l *link) cut() error {
	return l.pass(func() error {
		l.close()
		return errLinkClosed
	})
}

// close closes both connections. It may be called more than once.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.cancel()
	l.settled.Broadcast()
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

func (l *link) passRequests(r *bufio.Reader) error {
	for {
		raw, args, err := readRequest(r)
		if err != nil {
			return err
		}
		err = l.request(l.proxy.pick(args), raw, args)
		if err != nil {
			return err
		}
	}
}

func (l *link) passReplies(r *bufio.Reader) error {
	for {
		reply, err := readReply(r)
		if err != nil {
			return err
		}
		rule, due := l.oldest()
		if !due || strings.HasPrefix(reply, ">") {
			err = l.send(reply)
		} else {
			err = l.answer(rule, reply)
			l.settle()
		}
		if err != nil {
			return err
		}
	}
}

// request sends a request to the server, if the rule lets it.
func (l *link) request(rule *Rule, raw string, args []string) error {
	switch rule.effect() {
	case delayRequest:
		rule.fire()
		err := l.hold(rule)
		if err != nil {
			return err
		}
	case cutBeforeRequest, replyWith:
		err := l.awaitSettled()
		if err != nil {
			return err
		}
		return l.answer(rule, "")
	default: // the other faults are about the reply
	}
	if !subscription(args) {
		l.expect(rule)
	}

	return l.pass(func() error {
		l.proxy.record(args)
		_, err := l.server.Write([]byte(raw))
		return err
	})
}

// answer gives the client what the rule makes of a reply.
func (l *link) answer(rule *Rule, reply string) error {
	effect := rule.effect()
	if effect == none || effect == delayRequest {
		return l.reply(reply)
	}

	// First, so that a test finds it to have fired when its client has noticed.
	rule.fire()
	switch effect {
	case dropReply:
		l.silent = true
		return nil
	case delayReply:
		err := l.hold(rule)
		if err != nil {
			return err
		}
		return l.reply(reply)
	case replyWith, executeAndReplyWith:
		return l.send(rule.fault.reply)
	case staleReply:
		return l.replyStale(reply)
	case shiftReplies:
		l.shifted = true
		return l.reply(reply)
	default:
		return l.cut()
	}
}

// hold returns when what the rule holds back may go on.
func (l *link) hold(rule *Rule) error {
	delay := time.NewTimer(rule.fault.delay)
	defer delay.Stop()

	select {
	case <-delay.C:
		return nil
	case <-rule.released:
		return nil
	case <-l.ctx.Done():
		return errLinkClosed
	}
}

// reply passes the server's reply on, in its place.
func (l *link) reply(reply string) error {
	previous := l.previous
	l.previous = reply
	if l.shifted && previous != "" {
		reply = previous
	}

	return l.send(reply)
}

// replyStale gives the client the previous reply of the server for this one.
func (l *link) replyStale(reply string) error {
	stale := l.previous
	if stale == "" {
		stale = reply
	}
	l.previous = reply

	return l.send(stale)
}

// send writes to the client, or not if that is to hear nothing any more.
func (l *link) send(message string) error {
	if l.silent {
		return nil
	}

	return l.pass(func() error {
		_, err := l.client.Write([]byte(message))
		return err
	})
}

// pass has action write to a connection when there is no black hole.
func (l *link) pass(action func() error) error {
	return l.proxy.gate.pass(l.ctx.Done(), action)
}

// expect notes that the server has a request to answer, subject to the rule.
func (l *link) expect(rule *Rule) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.pending = append(l.pending, rule)
}

// oldest returns the rule for the next reply, or false if none is due.
func (l *link) oldest() (rule *Rule, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if len(l.pending) == 0 {
		return nil, false
	}

	return l.pending[0], true
}

// settle notes that the oldest request has been answered.
func (l *link) settle() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.pending = l.pending[1:]
	l.settled.Broadcast()
}

// awaitSettled returns when all requests so far have been answered.
func (l *link) awaitSettled() error {
	l.mu.Lock()
	defer l.mu.Unlock()

	for len(l.pending) > 0 && l.ctx.Err() == nil {
		l.settled.Wait()
	}

	return l.ctx.Err()
}

// subscription reports whether a request is answered by messages that come
// unasked, or by several replies, rather than by one.
func subscription(args []string) bool {
	switch strings.ToLower(args[0]) {
	case "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe":
		return true
	default:
		return false
	}
}
