package httpmw

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/interlock-go/interlock/dedupe"
)

// New returns a middleware that takes each request through guards, the outermost first, before the
// handler runs. It has every default of [Config], and panics on a nil guard: whoever built that one
// did not look at its error.
//
// Put it on the route, inside the mux, so that path parameters and the route's pattern are known:
//
//	mux.Handle("POST /accounts/{id}/withdraw", httpmw.New(once, account)(withdraw))
func New(guards ...*dedupe.Guard) func(http.Handler) http.Handler {
	m, err := Config{}.Middleware(guards...)
	if err != nil {
		panic(err)
	}
	return m.Wrap
}

// Middleware returns a middleware with the configuration. The error names every bad field and nil
// guard.
func (c Config) Middleware(guards ...*dedupe.Guard) (*Middleware, error) {
	c, err := c.withDefaults()
	for i, guard := range guards {
		if guard == nil {
			err = errors.Join(err, fmt.Errorf("httpmw: guard %d is nil; look at the error its constructor returned", i+1))
		}
	}
	if err != nil {
		return nil, err
	}
	kept := slices.Clone(defaultKeepHeaders)
	for _, name := range c.KeepHeaders {
		kept = append(kept, http.CanonicalHeaderKey(name))
	}
	return &Middleware{config: c, keptHeaders: kept, guards: slices.Clone(guards)}, nil
}

// Middleware takes requests through guards. It is safe for concurrent use.
type Middleware struct {
	config      Config
	keptHeaders []string
	guards      []*dedupe.Guard
}

// Wrap returns next behind the guards.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	handle := next.ServeHTTP
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := m.Serve(w, r, handle)
		if err == nil {
			return
		}
		var refusal *dedupe.Refusal
		if !errors.As(err, &refusal) { // guards return nothing else, but the handler has not run
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
			return
		}
		m.config.Refuse(w, r, refusal)
	})
}

// Serve takes one request through the guards and calls next if all of them let it. It is for
// frameworks on top of net/http that render errors themselves: it returns a [*dedupe.Refusal] and
// writes nothing when a guard turned the request away, and nil when the request was answered, by
// next or by a replay. The answer to be kept is what next has written when it returns.
func (m *Middleware) Serve(w http.ResponseWriter, r *http.Request, next func(http.ResponseWriter, *http.Request)) error {
	c := &call{request: request{config: &m.config, http: r}, middleware: m, w: w, next: next}
	return c.serve()
}

func (c *call) serve() error {
	defer func() {
		if c.recorder != nil {
			c.recorder.close()
		}
	}()
	if err := dedupe.Do(c.http.Context(), c.middleware.guards, c); err != nil {
		if outer, found := reach[interface{ disown() }](c.w); found {
			outer.disown()
		}
		return err
	}
	if c.recorder != nil {
		c.recorder.commit()
	}
	return nil
}

// call is one request on its way through the guards.
type call struct {
	request

	middleware *Middleware
	w          http.ResponseWriter
	next       func(http.ResponseWriter, *http.Request) // unless there is an exchange
	recorder   *recorder                                // nil unless a guard wants the answer

	// Of the exchange.
	recording Recording
	err       error
}

func (c *call) Invoke(ctx context.Context) {
	r := c.http.WithContext(ctx)
	if c.body != nil {
		r.Body = c.body.again(r.Body)
	}
	w := c.w
	if c.recorder != nil {
		w = c.recorder.writer()
	}
	defer func() { // net/http removes the uploaded files of its own request, not of a copy
		if c.http.MultipartForm == nil {
			c.http.MultipartForm = r.MultipartForm
		}
	}()
	if c.exchange != nil {
		c.invokeExchange(ctx, w, r)
		return
	}
	c.next(w, r)
}

func (c *call) Record() {
	if c.recorder == nil {
		c.recorder = newRecorder(c.w, c.http.Method == http.MethodHead, c.config.MaxAnswer, c.middleware.keptHeaders)
	}
}

func (c *call) Answer(keep bool) ([]byte, dedupe.Verdict) {
	status, header := c.recorder.result()
	switch {
	case c.recorder.disowned:
		return nil, dedupe.VerdictRelease
	case c.recorder.taken():
		return nil, dedupe.VerdictTombstone
	case !keep && !c.config.Keep(status, header):
		return nil, dedupe.VerdictRelease
	case !c.recorder.whole():
		return nil, dedupe.VerdictTombstone
	default:
		return c.recorder.answer().encode(), dedupe.VerdictKeep
	}
}

func (c *call) Replay(data []byte) error {
	a, err := decodeAnswer(data)
	if err != nil {
		return err
	}
	if !a.whole(c.http.Method == http.MethodHead) {
		return errAnswer
	}
	w := c.w
	if c.recorder != nil { // a guard further out keeps the replay as its own answer
		w = c.recorder.writer()
	}
	a.replay(w)
	return nil
}
