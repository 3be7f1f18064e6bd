package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/dedupe"
)

// line is this process's side of the waiting lines: what the claims in them are told, and over which
// subscriptions. A claim gets a place only while its process listens. Until then, and where nobody may
// listen, the engine asks again from time to time.
type line struct {
	store  *Store
	client Client
	name   string // of this process, in the places of its claims: 16 characters

	mu            sync.Mutex
	waiting       map[dedupe.Token]*waiting
	subscriptions map[string]*subscription // by the server's address, "" where there is one only
	listening     map[string]*subscription // by channel: where it is heard
	closed        bool
	denied        time.Time // until when not to try
	complained    bool
}

// waiting is a claim that had a place in a line, until it is released or completed: also after it was
// granted, because a word about that may still be on its way, and must not end what it is about.
type waiting struct {
	dedupe.Holder

	waiter dedupe.Waiter
	owner  bool      // it was granted, so nothing needs to be heard about it
	forget time.Time // when it has been left without a word for too long to be there still
}

func (l *line) use(s *Store, client Client) {
	l.store, l.client = s, client
	var name [12]byte
	_, _ = rand.Read(name[:]) // documented never to fail
	l.name = base64.RawURLEncoding.EncodeToString(name[:])
	l.waiting = make(map[dedupe.Token]*waiting)
	l.subscriptions = make(map[string]*subscription)
	l.listening = make(map[string]*subscription)
}

// channel is where words about a record are told, and how its place is marked.
func (l *line) channel(key string) (channel, mode string) {
	if _, cluster := l.client.(*redis.ClusterClient); cluster {
		return key + l.name, "s"
	}
	return l.store.prefix + "process:" + l.name, "p"
}

// enter returns a place in the line of a record for a claim that is about to be sent, or "" as long as
// nothing would be heard.
func (l *line) enter(key string, c dedupe.Claim) string {
	channel, mode := l.channel(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listening[channel] == nil {
		return ""
	}
	l.waiting[c.Token] = &waiting{Holder: c.Holder, waiter: c.Waiter, forget: time.Now().Add(patience)}
	return string(c.Token[:]) + mode + l.name
}

// patience is how long a claim is remembered that nobody speaks of.
const patience = 15 * time.Minute

// found notes what a claim found that wants a place. The first that finds its key held begins to listen.
func (l *line) found(key string, c dedupe.Claim, status string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.waiting[c.Yields]; w != nil && w.owner {
		delete(l.waiting, c.Yields)
	}
	switch status {
	case "granted":
		if w := l.waiting[c.Token]; w != nil {
			w.owner = true
		}
	case "held", "queued": // if it is queued already, it may be told yet
		if channel, _ := l.channel(key); l.listening[channel] == nil {
			l.listen(key, channel)
		}
	default:
		delete(l.waiting, c.Token)
	}
}

// leave forgets a claim.
func (l *line) leave(t dedupe.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, t)
}

// hear carries out a word, which came over a connection on which everything came that was said before
// heard.
func (l *line) hear(word string, heard time.Time) {
	fields := strings.SplitN(word[min(len(word), len(dedupe.Token{})):], " ", 3)
	if len(fields) != 3 {
		return
	}
	h := dedupe.Holder{Token: dedupe.Token([]byte(word[:len(dedupe.Token{})]))}
	number, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || number < 0 || !l.store.parseKey(fields[2], &h.Digest) {
		return
	}
	l.mu.Lock()
	w := l.waiting[h.Token]
	var grant dedupe.Grant
	switch fields[0] {
	case "granted":
		grant = dedupe.Grant{Fence: uint64(number), Since: heard, Lease: grantLease}
		if w != nil {
			w.owner = true
		}
	case "again":
		grant.Lease = time.Duration(number) * time.Microsecond
	default:
		w = nil
	}
	l.mu.Unlock()
	if (w == nil || !w.waiter.Wake(h, grant)) && grant.Fence != 0 {
		go func() { _ = l.store.Release(context.Background(), h) }() // to the next in line; or it ends by itself
	}
}

// grantLease is the one in line.lua.
const grantLease = 2 * time.Second

// wakeAll has all claims sent again: words may have been lost.
func (l *line) wakeAll() {
	l.mu.Lock()
	all := make([]*waiting, 0, len(l.waiting))
	for _, w := range l.waiting {
		all = append(all, w)
	}
	l.mu.Unlock()
	for _, w := range all {
		w.waiter.Wake(w.Holder, dedupe.Grant{})
	}
}

// parseKey reads the digest in a record's key.
func (s *Store) parseKey(key string, d *dedupe.Digest) bool {
	text, ours := strings.CutPrefix(key, s.prefix+"{")
	text, whole := strings.CutSuffix(text, "}")
	if !ours || !whole || base64.RawURLEncoding.DecodedLen(len(text)) != len(d) {
		return false
	}
	n, err := base64.RawURLEncoding.Decode(d[:], []byte(text))
	return err == nil && n == len(d)
}
