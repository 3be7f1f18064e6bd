package redisstore

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open returns a Store over a client that [Connect] makes for rawURL, with the store's budget.
// [Store.Close] closes the client.
func Open(rawURL string, options ...Option) (*Store, error) {
	s, err := newStore(options)
	if err != nil {
		return nil, fmt.Errorf("redisstore.Open: %w", err)
	}
	client, err := Connect(rawURL, s.calls.budget.length)
	if err != nil {
		return nil, err
	}
	s.calls.use(client)
	s.line.use(s, client)
	s.closer = client.Close
	return s, nil
}

// Connect makes a client with settings that suit a [Store] and others that must not wait long.
//
//	redis://user:password@host:6379/0                                 one server; rediss:// for TLS, unix:///path for a socket
//	redis+cluster://host:6379?addr=host2:6379                         a cluster; rediss+cluster:// for TLS
//	redis+sentinel://host:26379?master_name=main&addr=host2:26379     behind Sentinel; rediss+sentinel:// for TLS
//
// The settings, unless the URL's query gives others (read as by redis.ParseURL, ParseClusterURL and
// ParseFailoverURL): deadlines of contexts are honoured on the wire; dialling, waiting for a
// connection and a reply take at most timeout each; and a command that failed is sent again once.
// With them a call that times out gives up its connection at once, where a stock client keeps it for
// seconds.
//
// It does not connect yet: errors are about the URL only, and never carry a password.
func Connect(rawURL string, timeout time.Duration) (redis.UniversalClient, error) {
	client, err := connect(rawURL, timeout)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	return client, nil
}

func connect(rawURL string, timeout time.Duration) (redis.UniversalClient, error) {
	u, err := url.Parse(rawURL)
	if err != nil { // its text has parts of the URL, perhaps of the password
		return nil, errors.New("the URL cannot be read; write redis://host:6379, and in a password %23 for #, %2F for /, %3A for :, %40 for @")
	}
	if u.Fragment != "" {
		return nil, errors.New("the URL has a #; in a password write %23 for it")
	}
	scheme, kind, _ := strings.Cut(u.Scheme, "+")
	if scheme != "redis" && scheme != "rediss" && scheme != "unix" {
		kind = "unknown"
	}
	plain := *u
	plain.Scheme = scheme
	switch kind {
	case "":
		o, err := redis.ParseURL(plain.String())
		if err != nil {
			return nil, badURL(u, err)
		}
		o.MaintNotificationsConfig = noMaintenanceNotifications()
		tune(timeout, &o.ContextTimeoutEnabled, &o.MaxRetries, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout)
		return redis.NewClient(o), nil
	case "cluster":
		o, err := redis.ParseClusterURL(plain.String())
		if err != nil {
			return nil, badURL(u, err)
		}
		o.MaintNotificationsConfig = noMaintenanceNotifications()
		tune(timeout, &o.ContextTimeoutEnabled, &o.MaxRetries, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout)
		return redis.NewClusterClient(o), nil
	case "sentinel":
		o, err := redis.ParseFailoverURL(plain.String())
		if err == nil && o.MasterName == "" {
			err = errors.New("master_name is missing; add ?master_name=NAME")
		}
		if err != nil {
			return nil, badURL(u, err)
		}
		tune(timeout, &o.ContextTimeoutEnabled, &o.MaxRetries, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout)
		return redis.NewFailoverClient(o), nil
	default:
		return nil, badURL(u, fmt.Errorf("the scheme %q is unknown; use redis, redis+cluster or redis+sentinel", u.Scheme))
	}
}

// tune fills in what the URL left open.
func tune(timeout time.Duration, contextTimeout *bool, maxRetries, dialerRetries *int, timeouts ...*time.Duration) {
	*contextTimeout = true
	for _, retries := range []*int{maxRetries, dialerRetries} {
		if *retries == 0 {
			*retries = 1
		}
	}
	for _, t := range timeouts {
		if *t == 0 {
			*t = timeout
		}
	}
}

// noMaintenanceNotifications spares each new connection a command that only Redis's cloud service
// knows.
func noMaintenanceNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// badURL says what is wrong with which URL, without what may be secret: user, path and query stay out
// of it, also where the client's own words repeat them.
func badURL(u *url.URL, err error) error {
	text := err.Error()
	for _, values := range u.Query() {
		for _, value := range values {
			if value != "" {
				text = strings.ReplaceAll(text, value, "…")
			}
		}
	}
	return fmt.Errorf("%s://%s: %s", u.Scheme, u.Host, text)
}
