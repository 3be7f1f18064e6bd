package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// listeners are where a bank is served, nil for what is not.
type listeners struct{ http, echo, grpc net.Listener }

// listen opens what the flags ask for.
func (c config) listen(ctx context.Context) (listeners, error) {
	open := func(flag, address string) (net.Listener, error) {
		if address == "" {
			return nil, nil
		}
		l, err := listen(ctx, address)
		if err != nil {
			return nil, fmt.Errorf("-%s %q: %w; give another address, port 0 picks a free one", flag, address, err)
		}
		return l, nil
	}
	var l listeners
	var err1, err2, err3 error
	l.http, err1 = open("http", c.http)
	l.echo, err2 = open("echo", c.echo)
	l.grpc, err3 = open("grpc", c.grpc)
	if err := errors.Join(err1, err2, err3); err != nil {
		l.close()
		return listeners{}, err
	}
	return l, nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", address)
}

// close closes those that no server has closed yet.
func (l listeners) close() {
	for _, listener := range []net.Listener{l.http, l.echo, l.grpc} {
		if listener != nil {
			_ = listener.Close()
		}
	}
}

// frontend is one server of a bank.
type frontend struct {
	listener net.Listener
	serve    func(net.Listener) error
	stop     func(context.Context) error // takes no more requests, and waits for those that run
}

// frontends returns the servers of the bank. All of them share its guards.
func (b *bank) frontends(l listeners) ([]frontend, error) {
	var served []frontend
	if l.http != nil {
		mux, err := b.newMux()
		if err != nil {
			return nil, err
		}
		served = append(served, b.httpFrontend(l.http, mux))
	}
	if l.echo != nil {
		e, err := b.newEcho()
		if err != nil {
			return nil, err
		}
		served = append(served, b.httpFrontend(l.echo, e))
	}
	if l.grpc != nil {
		server, err := b.newGRPC()
		if err != nil {
			return nil, err
		}
		served = append(served, grpcFrontend(l.grpc, server))
	}
	return served, nil
}

func (b *bank) httpFrontend(l net.Listener, h http.Handler) frontend {
	// A client that is slow to send its request or to read its answer holds its account meanwhile.
	server := &http.Server{
		Handler: h, ErrorLog: b.log,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: b.served, WriteTimeout: b.served,
	}
	return frontend{l, server.Serve, server.Shutdown}
}

func grpcFrontend(l net.Listener, server *grpc.Server) frontend {
	return frontend{l, server.Serve, func(ctx context.Context) error { return stopGRPC(ctx, server) }}
}

// stopGRPC is http.Server.Shutdown for gRPC, except that it cuts off whoever is left when ctx ends: a
// client that keeps a stream open, of reflection, for one.
func stopGRPC(ctx context.Context, server *grpc.Server) error {
	stopped := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		go server.Stop() // it may wait for handlers, which the bank does not do for longer than it has said
		return context.Cause(ctx)
	}
}

// serve answers requests until ctx ends. Then it takes no more, lets those that run finish under
// their guards, and closes the bank. The order matters: guards refuse requests once they are closed,
// and the servers have to be the first to stop.
func (b *bank) serve(ctx context.Context, l listeners) error {
	frontends, err := b.frontends(l)
	if err != nil {
		l.close()
		return errors.Join(err, b.close(ctx))
	}
	failed := make(chan error, len(frontends))
	for _, f := range frontends {
		go func() { failed <- fmt.Errorf("serving on %s: %w", f.listener.Addr(), f.serve(f.listener)) }()
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.grace)
	defer cancel()
	return errors.Join(err, stop(ctx, frontends), b.close(ctx))
}

// stop stops all of them at the same time.
func stop(ctx context.Context, frontends []frontend) error {
	errs := make([]error, len(frontends))
	var stopping sync.WaitGroup
	for i, f := range frontends {
		stopping.Go(func() { errs[i] = f.stop(ctx) })
	}
	stopping.Wait()
	return errors.Join(errs...)
}
