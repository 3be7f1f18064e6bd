package redistest

import (
	"net"
	"slices"
	"sync"
	"testing"
)

// Proxy passes the traffic between clients and one server on, and does to it
// what its rules say. It pairs every request with its reply, in pipelines too.
//
// Subscriptions pass, but get no replies that rules could act on: what the
// server sends without being asked is passed on as it comes. CLIENT REPLY OFF
// and SKIP are not supported.
type Proxy struct {
	tb       testing.TB
	upstream string
	listener net.Listener
	gate     *gate
	running  sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	links    map[*link]struct{}
	rules    []*Rule
	requests [][]string
}

// NewProxy runs a proxy until the end of the test, in front of the server at
// upstream, which is a host:port. The server need not run yet: each client's
// connection makes one to the server, and is closed when that fails.
func NewProxy(tb testing.TB, upstream string) *Proxy {
	tb.Helper()

	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		tb.Fatalf("proxy: %v", err)
	}
	p := &Proxy{
		tb:       tb,
		upstream: upstream,
		listener: listener,
		gate:     newGate(),
		links:    make(map[*link]struct{}),
	}
	tb.Cleanup(p.close)
	p.running.Go(p.accept)

	return p
}

// Addr returns the address for clients to connect to, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL returns the proxy's address in the form that redis.ParseURL takes.
func (p *Proxy) URL() string { return "redis://" + p.Addr() }

// On arranges for fault to befall the nth request that match picks, from now on
// and over all connections: 1 is the next, and 0 means each of them. Where
// several rules apply to a request, the one that was added first does.
func (p *Proxy) On(match Match, nth int, fault Fault) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()

	rule := newRule(match, nth, fault)
	p.rules = append(p.rules, rule)

	return rule
}

// Remove ends a rule: later requests are not subject to it. What it holds back
// remains so until it is released.
func (p *Proxy) Remove(rule *Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.rules = slices.DeleteFunc(p.rules, func(r *Rule) bool { return r == rule })
}

// BlackHole lets nothing pass from now on, in either direction, as when a cable
// is cut: connections stay open, new ones are accepted, and neither side learns
// when the other closes one.
func (p *Proxy) BlackHole() { p.gate.shut() }

// Resume ends the black hole. What was held back flows on, as the packets do
// that are sent again when a network has recovered.
func (p *Proxy) Resume() { p.gate.reopen() }

// CutAll closes all connections, on both sides. What a black hole or a rule
// holds back of theirs is lost. It does not end the black hole, so CutAll and
// Resume is to recover with none of the connections having survived.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()

	for l := range p.links {
		l.close()
	}
}

// Requests returns the requests that have been sent on to the server, in order,
// by their arguments. Connections' greetings are among them.
func (p *Proxy) Requests() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()

	return slices.Clone(p.requests)
}

// Count returns how many of the requests that have been sent on to the server
// match picks.
func (p *Proxy) Count(match Match) int {
	count := 0
	for _, args := range p.Requests() {
		if match(args) {
			count++
		}
	}

	return count
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		l := newLink(p, client)
		if !p.add(l) {
			l.close()
			return
		}
		p.running.Go(func() {
			defer p.remove(l)
			l.run()
		})
	}
}

// pick returns the rule that applies to a request, if any.
func (p *Proxy) pick(args []string) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()

	var picked *Rule
	for _, rule := range p.rules {
		if rule.due(args) && picked == nil {
			picked = rule
		}
	}

	return picked
}

// record notes that a request is on its way to the server.
func (p *Proxy) record(args []string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.requests = append(p.requests, args)
}

// add returns whether the proxy, not being closed, has taken the link on.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	if !p.closed {
		p.links[l] = struct{}{}
	}

	return !p.closed
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()

	delete(p.links, l)
}

// close ends everything and returns when nothing runs any more.
func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()

	_ = p.listener.Close()
	p.CutAll()
	p.running.Wait()
}
