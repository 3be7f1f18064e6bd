package rules

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/redisstore/redistest"
)

// TestR7ClientHangsUp has the client leave while the handler runs. What comes after the handler is
// done for it all the same.
func TestR7ClientHangsUp(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]bool{"once": true, "serialize": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			guard, settles := newSerialize(t, r.store), releases
			if once {
				guard, settles = newOnce(t, r.store), completes
			}
			running, causes := make(chan struct{}, 1), make(chan error, 1)
			s := newService(func(request *http.Request) {
				if request.Header.Get("Hang-Up") == "" {
					return
				}
				running <- struct{}{}
				<-request.Context().Done()
				causes <- context.Cause(request.Context())
			}, guard)
			server := httptest.NewServer(s.handler)
			t.Cleanup(server.Close)

			ctx, hangUp := context.WithCancel(t.Context())
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/withdraw", http.NoBody)
			succeed(t, err)
			request.Header.Set("Idempotency-Key", "key")
			request.Header.Set("Hang-Up", "yes")
			gone := make(chan error, 1)
			go func() {
				response, err := server.Client().Do(request)
				if err == nil {
					_ = response.Body.Close()
				}
				gone <- err
			}()
			await(t, running, "the handler's start")
			hangUp()
			if err := await(t, gone, "the client's leaving"); err == nil {
				t.Fatal("the client got an answer")
			}
			if cause := await(t, causes, "the handler's end"); errors.Is(cause, dedupe.ErrLeaseLost) {
				t.Errorf("the handler's context ended with %v", cause)
			}
			redistest.Eventually(t, patience, func() bool { return r.proxy.Count(settles) == 1 }, "the store was not told")

			again := request.Clone(t.Context())
			again.Header.Del("Hang-Up")
			redistest.Eventually(t, soon, func() bool {
				response, err := server.Client().Do(again)
				succeed(t, err)
				defer func() { _ = response.Body.Close() }()
				return response.StatusCode == http.StatusCreated &&
					(response.Header.Get("Idempotent-Replayed") == "true") == once
			}, "the repeat did not get its answer")
			if want := map[bool]int32{true: 1, false: 2}[once]; s.runs.Load() != want {
				t.Errorf("%d runs, want %d", s.runs.Load(), want)
			}
		})
	}
}

// TestR7ContextEndsDuringClaim has the caller leave between a claim and its reply: the key must not
// stay behind for a lease.
func TestR7ContextEndsDuringClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	guard := newSerialize(t, r.store)
	held := r.proxy.On(claims, 1, redistest.Block())
	ctx, leave := context.WithCancel(t.Context())
	refused := make(chan error, 1)
	go func() { refused <- guard.Run(ctx, "key", func(context.Context) error { return nil }) }()
	succeed(t, held.Wait(t.Context()))
	leave()
	if err := await(t, refused, "the refusal"); err == nil {
		t.Fatal("the handler ran")
	}
	held.Release()
	redistest.Eventually(t, soon, func() bool {
		return guard.Run(t.Context(), "key", func(context.Context) error { return nil }) == nil
	}, "the key is stuck")
}
