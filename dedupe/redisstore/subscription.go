package redisstore

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// beat is how often a subscription is tried with a PING while somebody waits. What follows the
	// answer was said after the question was asked: so it is known how old a grant can be at most.
	beat = 400 * time.Millisecond
	// silence is how long an answer may take before the connection is given up.
	silence = 1200 * time.Millisecond
	// linger is how long a subscription is kept that nobody needs.
	linger = 15 * time.Second
	// respite is how long after a failure nobody tries again.
	respite = 250 * time.Millisecond
	// banned is the same after Redis refused.
	banned = time.Minute
)

// subscription is one connection over which Redis tells about grants.
type subscription struct {
	line    *line
	client  Client // of the server
	address string
	pubsub  *redis.PubSub
	sharded bool
	end     context.CancelFunc

	used map[string]time.Time // channels, and when each was needed last; guarded by line.mu

	mu    sync.Mutex
	asked time.Time // when the PING was sent that is not answered yet
	pings uint64
	heard time.Time // when the last PING was sent that was answered
}

// listen begins to listen for words about a record. The line is locked.
func (l *line) listen(key, channel string) {
	if l.closed || time.Now().Before(l.denied) {
		return
	}
	switch client := l.client.(type) {
	case interface {
		Subscribe(ctx context.Context, channels ...string) *redis.PubSub
		SSubscribe(ctx context.Context, channels ...string) *redis.PubSub
		Options() *redis.Options
	}: // one server, perhaps behind Sentinel
		if l.subscriptions[""] == nil {
			l.subscribe(l.client, "", channel, client.Subscribe(context.Background()), false)
		}
	case *redis.ClusterClient:
		l.denied = time.Now().Add(beat / 8) // until it is known which node has the key
		go l.listenTo(client, key, channel)
	}
}

// listenTo listens for words about a record at the node of a cluster that has it.
func (l *line) listenTo(client *redis.ClusterClient, key, channel string) {
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	node, err := client.MasterForKey(ctx, key)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.denied = time.Time{}
	address := node.Options().Addr
	s := l.subscriptions[address]
	switch {
	case l.closed || l.listening[channel] != nil:
	case s == nil:
		l.subscribe(node, address, channel, node.SSubscribe(context.Background()), true)
	case s.used[channel].IsZero():
		s.used[channel] = time.Now()
		go func() { _ = s.pubsub.SSubscribe(context.Background(), channel) }() // or the connection ends, and with it s
	}
}

// subscribe starts a subscription. The line is locked.
func (l *line) subscribe(client Client, address, channel string, pubsub *redis.PubSub, sharded bool) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &subscription{
		line: l, client: client, address: address, pubsub: pubsub, sharded: sharded, end: cancel,
		used: map[string]time.Time{channel: time.Now()},
	}
	l.subscriptions[address] = s
	context.AfterFunc(ctx, func() { _ = pubsub.Close() })
	go s.receive(ctx, channel)
	go s.watch(ctx)
}

// receive hears words until the connection fails.
func (s *subscription) receive(ctx context.Context, channel string) {
	defer s.over()
	subscribe := s.pubsub.Subscribe
	if s.sharded {
		subscribe = s.pubsub.SSubscribe
	}
	if err := subscribe(ctx, channel); err != nil {
		s.line.complain(err)
		return
	}
	go s.tell(ctx, channel)
	for {
		received, err := s.pubsub.Receive(ctx)
		if err != nil {
			s.line.complain(err)
			return
		}
		switch r := received.(type) {
		case *redis.Subscription:
			s.line.heardOf(s, r)
		case *redis.Pong:
			s.answered(r.Payload)
		case *redis.Message:
			s.line.hear(r.Payload, s.since())
		}
	}
}

// tell tries whether this process may tell others, as its scripts do, who would take those for dead that it
// may not tell. The word says nothing.
func (s *subscription) tell(ctx context.Context, channel string) {
	command := "publish"
	if s.sharded {
		command = "spublish"
	}
	if err := s.client.Process(ctx, redis.NewIntCmd(ctx, command, channel, "")); err != nil {
		s.line.complain(err)
		s.end()
	}
}

// heardOf notes that a channel is heard from now on, or not any more because its slot has moved.
func (l *line) heardOf(s *subscription, r *redis.Subscription) {
	l.mu.Lock()
	moved := false
	switch {
	case r.Kind == "subscribe" || r.Kind == "ssubscribe":
		l.listening[r.Channel] = s
	case l.listening[r.Channel] == s:
		delete(l.listening, r.Channel)
		delete(s.used, r.Channel)
		moved = true
	}
	l.mu.Unlock()
	if moved {
		l.wakeAll()
	}
}

// since returns when the last PING was sent that was answered.
func (s *subscription) since() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}

// answered notes the answer to a PING.
func (s *subscription) answered(payload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if payload == strconv.FormatUint(s.pings, 10) {
		s.heard, s.asked = s.asked, time.Time{}
	}
}

// watch tries the connection while somebody waits, and ends the subscription when it is dead or not
// needed.
func (s *subscription) watch(ctx context.Context) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	defer s.end()
	for s.line.tidy(s) && s.try(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// try sends a PING if none is unanswered, and reports whether the connection may be alive.
func (s *subscription) try(ctx context.Context) bool {
	s.mu.Lock()
	now := time.Now()
	if !s.asked.IsZero() {
		defer s.mu.Unlock()
		return now.Sub(s.asked) <= silence
	}
	s.pings++
	s.asked = now
	payload := strconv.FormatUint(s.pings, 10)
	s.mu.Unlock()
	return s.pubsub.Ping(ctx, payload) == nil
}

// tidy forgets what is long over, and reports whether a subscription is still needed.
func (l *line) tidy(s *subscription) bool {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for t, w := range l.waiting {
		if now.After(w.forget) {
			delete(l.waiting, t)
		}
	}
	for _, w := range l.waiting {
		if w.owner {
			continue
		}
		channel, _ := l.channel(l.store.Key(w.Digest))
		if _, ours := s.used[channel]; ours {
			s.used[channel] = now
		}
	}
	for channel, used := range s.used {
		if now.Sub(used) < linger {
			continue
		}
		delete(s.used, channel)
		delete(l.listening, channel)
		if s.sharded && len(s.used) > 0 {
			go func() { _ = s.pubsub.SUnsubscribe(context.Background(), channel) }() // or the connection ends
		}
	}
	return len(s.used) > 0
}

// over takes a subscription away whose connection is gone. Its waiters ask, and the first of them
// that does finds out whether there is a new one.
func (s *subscription) over() {
	s.end()
	l := s.line
	l.mu.Lock()
	for channel, at := range l.listening {
		if at == s {
			delete(l.listening, channel)
		}
	}
	delete(l.subscriptions, s.address)
	l.mu.Unlock()
	l.wakeAll()
}

// complain notes why nothing is heard, and says so once if it is not for an operator to see anyway.
func (l *line) complain(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.denied = time.Now().Add(respite)
	if !redis.HasErrorPrefix(err, "NOPERM") && !redis.HasErrorPrefix(err, "unknown command") {
		return // it passes
	}
	l.denied = time.Now().Add(banned)
	if !l.complained {
		l.complained = true
		slog.Warn("redisstore: waiting requests ask Redis from time to time, because it does not let them listen: "+
			"allow the Redis user +subscribe +ssubscribe +publish +spublish +ping and the channels &"+l.store.prefix+"*",
			"error", err)
	}
}

// close ends all subscriptions for good.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, s := range l.subscriptions {
		s.end()
	}
}
