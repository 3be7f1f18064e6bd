package worker

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/interlock-go/interlock/echomw"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/labstack/echo/v4"
)

const replayedHeader = "Idempotent-Replayed"

var (
	sentBody = []byte(`{"amount":10,"currency":"EUR","to":"DE89 3704 0044 0532 0130 00"}`)
	jsonType = []string{"application/json"}
)

func newMux(g *guarding, s *service) http.Handler {
	withdraw := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = jsonType
		_, _ = w.Write(s.run())
	}))
	switch {
	case g.floor != nil:
		next := withdraw
		withdraw = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := g.around(r.Context(), r.Header.Get(keyHeader), func() { next.ServeHTTP(w, r) }); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}
		})
	case g.guards != nil:
		withdraw = httpmw.New(g.guards...)(withdraw)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{id}/withdraw", withdraw)
	return mux
}

func newEcho(g *guarding, s *service) http.Handler {
	e := echo.New()
	withdraw := func(c echo.Context) error { return c.Blob(http.StatusOK, jsonType[0], s.run()) }
	var middleware []echo.MiddlewareFunc
	switch {
	case g.floor != nil:
		middleware = append(middleware, func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				var answered error
				err := g.around(c.Request().Context(), c.Request().Header.Get(keyHeader), func() { answered = next(c) })
				if err != nil {
					return echo.NewHTTPError(http.StatusServiceUnavailable).SetInternal(err)
				}
				return answered
			}
		})
	case g.guards != nil:
		middleware = append(middleware, echomw.New(g.guards...))
	}
	e.POST("/accounts/:id/withdraw", withdraw, middleware...)
	return e
}

// serveHTTP returns clients that call the handler without a network.
func serveHTTP(h http.Handler, count int) []client {
	clients := make([]client, count)
	for i := range clients {
		c := &httpClient{handler: h, key: []string{""}, writer: writer{header: make(http.Header)}}
		c.request = httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/accounts/7/withdraw", &c.body)
		c.request.ContentLength = int64(len(sentBody))
		c.request.Header["Content-Type"] = jsonType
		c.request.Header[keyHeader] = c.key
		clients[i] = c
	}
	return clients
}

// httpClient uses one request again and again, so that what is measured is not the making of it.
type httpClient struct {
	handler http.Handler
	request *http.Request
	body    rewound
	key     []string
	writer  writer
}

func (c *httpClient) send(_ context.Context, key string) (replayed bool, err error) {
	c.key[0] = key
	c.body.Reset(sentBody)
	c.request.Body = &c.body
	clear(c.writer.header)
	c.writer.status, c.writer.size = 0, 0
	c.handler.ServeHTTP(&c.writer, c.request)
	if (c.writer.status != 0 && c.writer.status != http.StatusOK) || c.writer.size == 0 {
		return false, fmt.Errorf("answered %d with %d bytes", c.writer.status, c.writer.size)
	}
	return len(c.writer.header[replayedHeader]) > 0, nil
}

// rewound is a body that can be read again.
type rewound struct{ bytes.Reader }

func (*rewound) Close() error { return nil }

// writer takes an answer and keeps what has to be checked of it.
type writer struct {
	header http.Header
	status int
	size   int
}

func (w *writer) Header() http.Header    { return w.header }
func (w *writer) WriteHeader(status int) { w.status = status }
func (w *writer) Flush()                 {}

func (w *writer) Write(p []byte) (int, error) {
	w.size += len(p)
	return len(p), nil
}
