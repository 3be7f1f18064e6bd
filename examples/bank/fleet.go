package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"sync"
)

// fleet is some replicas of one bank, each with its own server and its own connections to Redis,
// and a client of theirs.
type fleet struct {
	urls   []string
	client *client

	stop    context.CancelFunc
	serving sync.WaitGroup

	mu     sync.Mutex
	failed error
}

// openFleet returns replicas that serve until the fleet is closed.
func openFleet(ctx context.Context, c config, n namespace, logger *log.Logger) (*fleet, error) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	f := &fleet{
		client: &client{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: repeats}}, token: "anna"},
		stop:   stop,
	}
	for range replicas {
		b, err := openBank(ctx, c, n, logger)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		listener, err := listen(ctx, "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, b.close(ctx), f.close())
		}
		f.urls = append(f.urls, "http://"+listener.Addr().String())
		f.serving.Go(func() {
			err := b.serve(running, listeners{http: listener})
			f.mu.Lock()
			defer f.mu.Unlock()
			f.failed = errors.Join(f.failed, err)
		})
	}
	return f, nil
}

// account returns where request number i finds an account: each goes to another replica.
func (f *fleet) account(i int, id string) string {
	return f.urls[i%len(f.urls)] + "/accounts/" + id
}

// together sends n requests at the same time and waits for their answers. Connections are made
// beforehand, so that it is indeed the same time.
func (f *fleet) together(ctx context.Context, id string, n int, send func(i int) (answer, error)) ([]answer, error) {
	for i := range f.urls {
		if _, err := f.client.account(ctx, f.account(i, id)); err != nil {
			return nil, err
		}
	}
	answers, errs := make([]answer, n), make([]error, n)
	start := make(chan struct{})
	var sending sync.WaitGroup
	for i := range n {
		sending.Go(func() {
			<-start
			answers[i], errs[i] = send(i)
		})
	}
	close(start)
	sending.Wait()
	return answers, errors.Join(errs...)
}

// close stops the replicas and waits until they have.
func (f *fleet) close() error {
	// A connection that was made and not used would hold up its server.
	f.client.http.CloseIdleConnections()
	f.stop()
	f.serving.Wait()
	return f.failed
}
