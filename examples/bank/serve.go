package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", address)
}

// serve answers requests until ctx ends. Then it takes no more, lets those that run finish under
// their guards, and closes the bank. The order matters: guards refuse requests once they are closed,
// and the server has to be the first to stop.
func serve(ctx context.Context, listener net.Listener, b *bank) error {
	// A client that is slow to send its request or to read its answer holds its account meanwhile.
	server := &http.Server{
		Handler: b, ErrorLog: b.log,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: b.served, WriteTimeout: b.served,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("serving on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.grace)
	defer cancel()
	return errors.Join(err, server.Shutdown(ctx), b.close(ctx))
}
