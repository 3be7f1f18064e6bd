package httpmw

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/interlock-go/interlock/dedupe"
)

// ClientConfig is how a [Transport] makes keys and tries again. The zero value has every default.
type ClientConfig struct {
	// Header carries the key. Go's own transport knows Idempotency-Key and X-Idempotency-Key: with
	// one of these it sends a request again, with the same key, when a connection that it kept open
	// turns out to be dead. The default is Idempotency-Key.
	Header string

	// NewKey makes the key of a call whose context has none (see [dedupe.ContextWithKey]). It is
	// called by many goroutines at once. With "" the call fails. The default makes a UUID of version
	// 7: 122 bits of time and chance.
	NewKey func() string

	// Methods are the methods whose requests get a key. The default is every method but the safe
	// ones: GET, HEAD, OPTIONS and TRACE.
	Methods []string

	// MaxAttempts is how often a request is sent at most. 1 is never to try again; at most 1000; the
	// default is 10. With refusals that ask for a second, as they do unless the service knows better,
	// that is 9 to 20 s.
	MaxAttempts int

	// MaxWait is the longest wait between two attempts. A refusal that asks for more is returned at
	// once. From 1 s to 24 h; the default is 1 min.
	MaxWait time.Duration
}

// withDefaults returns c with every default filled in, or an error that names each bad field.
func (c ClientConfig) withDefaults() (ClientConfig, error) {
	var found []error
	bad := func(format string, args ...any) {
		found = append(found, fmt.Errorf("httpmw.ClientConfig: "+format, args...))
	}
	if c.Header == "" {
		c.Header = "Idempotency-Key"
	}
	if reason := neverKept(c.Header); reason != "" {
		bad("Header is %q, which %s; name one for the key", c.Header, reason)
	}
	for _, method := range c.Methods {
		if method == "" || strings.ContainsFunc(method, notInToken) {
			bad("Methods has %q, which is not a method; leave it out", method)
		}
	}
	if c.MaxAttempts < 0 || c.MaxAttempts > 1000 {
		bad("MaxAttempts is %d; it must be from 1 to 1000, and 0 is the default of 10", c.MaxAttempts)
	}
	if c.MaxWait != 0 && (c.MaxWait < time.Second || c.MaxWait > 24*time.Hour) {
		bad("MaxWait is %v; it must be from 1s to 24h, and 0 is the default of 1m", c.MaxWait)
	}
	c.Header = http.CanonicalHeaderKey(c.Header)
	c.Methods = slices.Clone(c.Methods)
	if c.NewKey == nil {
		c.NewKey = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 10
	}
	if c.MaxWait == 0 {
		c.MaxWait = time.Minute
	}
	return c, errors.Join(found...)
}

// NewTransport returns the client's side of a [dedupe.Once]: an http.RoundTripper that sends each
// request with an idempotency key of its own. It has every default of [ClientConfig]. Without a base
// requests go through http.DefaultTransport.
//
//	client := &http.Client{Transport: httpmw.NewTransport(nil), Timeout: time.Minute}
func NewTransport(base http.RoundTripper) *Transport {
	t, err := ClientConfig{}.Transport(base)
	if err != nil {
		panic(err) // the defaults are good
	}
	return t
}

// Transport is [NewTransport] with the configuration. The error names every bad field.
func (c ClientConfig) Transport(base http.RoundTripper) (*Transport, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return &Transport{config: c, base: base}, nil
}

// Transport is an http.RoundTripper that gives each call one key. It is made by [NewTransport] and
// safe for concurrent use.
//
// The key is the one that the request has in its header already, even an empty one; or else that of
// the request's context (see [dedupe.ContextWithKey]); or else a new one. It stays the same over
// attempts and over the redirects that http.Client follows with the same method and body (307, 308);
// a redirect to a GET (301, 302, 303) has none. The request of the response has it in its header.
//
// A request that a guard turned away as in flight, resource locked or store unavailable is sent again
// after the time that Retry-After asks for, and up to a quarter of that longer with each refusal in a
// row. The last refusal is returned, as it came, after [ClientConfig].MaxAttempts, and at once when the wait
// is over MaxWait or reaches the deadline of the request's context, and when the request has a body
// and no GetBody (http.NewRequest sets that for the usual kinds). Every other answer is returned
// too, among them those that say that the key was used for another request, and the 409 and 503 of
// services that say nothing about a guard: only the problem types of [WriteProblem] count. So do
// errors: what a dead connection did to a request is for others to know. [Replayed] tells whether the
// service gave an earlier answer again.
//
// A Transport belongs outside everything that sends requests again, such as a retrying
// http.RoundTripper: as its base. On the inside, each attempt would be a call with a key of its own, and run
// again. Whatever sends again from further out, such as a loop around http.Client, gives the attempts
// the same key with [dedupe.ContextWithKey].
type Transport struct {
	config ClientConfig
	base   http.RoundTripper
}

// Replayed reports whether a service gave an earlier answer again: the request was not carried out
// this time.
func Replayed(response *http.Response) bool {
	return response != nil && response.Header.Get(replayedHeader) == "true"
}

// CloseIdleConnections closes those of the base, for http.Client.CloseIdleConnections.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

var errNoClientKey = errors.New("httpmw: the idempotency key of the call is empty")

// keyed returns the request with its key: a copy, if it has to be added.
func (t *Transport) keyed(r *http.Request) (*http.Request, error) {
	if !t.needsKey(r) || t.hasKey(r.Header) {
		return r, nil
	}
	key := t.earlierKey(r)
	if key == nil {
		made, ok := dedupe.KeyFrom(r.Context())
		if !ok {
			made = t.config.NewKey()
		}
		if made == "" {
			return nil, errNoClientKey
		}
		key = []string{made}
	}
	sent := r.Clone(r.Context())
	if sent.Header == nil {
		sent.Header = make(http.Header)
	}
	sent.Header[t.config.Header] = key
	return sent, nil
}

func (t *Transport) needsKey(r *http.Request) bool {
	if t.config.Methods != nil {
		return slices.Contains(t.config.Methods, cmp.Or(r.Method, http.MethodGet))
	}
	return !(&request{http: r}).Safe()
}

// hasKey also finds a key that was put there past http.Header.Set.
func (t *Transport) hasKey(header http.Header) bool {
	for name := range header {
		if strings.EqualFold(name, t.config.Header) {
			return true
		}
	}
	return false
}

// earlierKey returns the key with which a request was sent that was redirected to r. http.Client
// copies the headers of the first request only as its caller made them.
func (t *Transport) earlierKey(r *http.Request) []string {
	if r.Response == nil || r.Response.Request == nil || r.Response.Request.Method != r.Method {
		return nil
	}
	return slices.Clone(r.Response.Request.Header[t.config.Header])
}
