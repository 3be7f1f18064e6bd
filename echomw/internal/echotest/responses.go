package echotest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"testing"
)

// testResponses looks at the echo.Response that outer middleware sees after an answer and after its
// replay.
func testResponses[M any](t *testing.T, v Version[M]) {
	for name, test := range map[string]struct {
		handler func(Context) error
		first   Response
		replay  Response
	}{
		"JSON": {
			handler: func(c Context) error { return c.JSON(http.StatusCreated, "done") },
			first:   Response{true, http.StatusCreated, 7}, replay: Response{true, http.StatusCreated, 7},
		},
		"no content": {
			handler: func(c Context) error { return c.NoContent(http.StatusNoContent) },
			first:   Response{true, http.StatusNoContent, 0}, replay: Response{true, http.StatusNoContent, 0},
		},
		"in parts": {
			handler: func(c Context) error {
				for range 3 {
					if _, err := io.WriteString(v.Writer(c), "part "); err != nil {
						return err
					}
				}
				return nil
			},
			first: Response{true, http.StatusOK, 15}, replay: Response{true, http.StatusOK, 15},
		},
		"nothing": {
			handler: func(Context) error { return nil },
			first:   Response{false, http.StatusOK, 0}, replay: Response{true, http.StatusOK, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outside, inside := make(chan Response, 1), make(chan Response, 1)
			watch := func(seen chan<- Response) M {
				return v.Middleware(func(c Context, next func() error) error {
					err := next()
					seen <- v.Response(c)
					return err
				})
			}
			server := v.start(t, App[M]{Use: []M{watch(outside)}, Route: []M{v.New(Once(t)), watch(inside)}, Handler: test.handler})

			first := Post(t, server.Server, "1")
			if got := await(t, "the first answer", outside); got != test.first {
				t.Errorf("outside they see %+v; want %+v", got, test.first)
			}
			if got := await(t, "the first answer", inside); got != test.first {
				t.Errorf("inside they see %+v; want %+v", got, test.first)
			}
			Post(t, server.Server, "1").expect(t, first.Status, trimmed(first.Body), true)
			if got := await(t, "the replay", outside); got != test.replay {
				t.Errorf("of a replay they see %+v; want %+v", got, test.replay)
			}
		})
	}
}

// testHooks has hooks on both sides. The handler's count for the record, those of outer middleware
// for each client.
func testHooks[M any](t *testing.T, v Version[M]) {
	hook := func(name string, count *int, after *int) M {
		return v.Middleware(func(c Context, next func() error) error {
			v.Before(c, func() {
				*count++
				v.Writer(c).Header().Set(name, strconv.Itoa(*count))
			})
			v.After(c, func() { *after++ })
			return next()
		})
	}
	for name, handler := range map[string]func(Context) error{
		"an answer": done,
		"an error":  func(Context) error { return v.HTTPError(http.StatusUnprocessableEntity, "no") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before, after [2]int
			server := v.start(t, App[M]{
				Use:     []M{hook("Etag", &before[0], &after[0])},
				Route:   []M{v.New(Once(t)), hook("Content-Language", &before[1], &after[1])},
				Handler: handler,
			})
			for i, outer := range []string{"1", "2", "3"} {
				reply := Post(t, server.Server, "1")
				if reply.Replayed != (i > 0) || reply.Header.Get("Etag") != outer || reply.Header.Get("Content-Language") != "1" {
					t.Errorf("answer %d: %+v", i+1, reply)
				}
			}
			if want := [2]int{3, 1}; before != want || after != want {
				t.Errorf("hooks ran %d times before and %d times after; want %d", before, after, want)
			}
		})
	}
}

// testStreams has answers that cannot be kept, or have more than one part.
func testStreams[M any](t *testing.T, v Version[M]) {
	t.Run("Flush", func(t *testing.T) {
		t.Parallel()
		seen := make(chan struct{})
		server := v.start(t, App[M]{Route: []M{v.New(Once(t))}, Handler: func(c Context) error {
			if err := c.String(http.StatusOK, "early "); err != nil {
				return err
			}
			flusher, ok := v.Writer(c).(http.Flusher)
			if !ok {
				return v.HTTPError(http.StatusNotImplemented, "no Flusher")
			}
			flusher.Flush()
			<-seen
			_, err := io.WriteString(v.Writer(c), "late")
			return err
		}})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/accounts/7/withdraw", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(keyHeader, "1")
		r.Header.Set("Content-Type", "application/json")
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		early := make([]byte, 6)
		if _, err := io.ReadFull(response.Body, early); err != nil || string(early) != "early " {
			t.Errorf("early there is %q, %v", early, err)
		}
		close(seen)
		if late, err := io.ReadAll(response.Body); err != nil || string(late) != "late" {
			t.Errorf("late there is %q, %v", late, err)
		}
		if reply := Post(t, server.Server, "1", withBody("", true)); reply.Status != http.StatusConflict || reply.Replayed {
			t.Errorf("a repeat gets %+v", reply)
		}
		server.expectRuns(t, 1)
	})

	t.Run("Hijack", func(t *testing.T) {
		t.Parallel()
		server := v.start(t, App[M]{Route: []M{v.New(Once(t))}, Handler: func(c Context) error {
			hijacker, ok := v.Writer(c).(http.Hijacker)
			if !ok {
				return v.HTTPError(http.StatusNotImplemented, "no Hijacker")
			}
			connection, buffered, err := hijacker.Hijack()
			if err != nil {
				return err
			}
			return answerOn(connection, buffered)
		}})
		Post(t, server.Server, "1").expect(t, http.StatusOK, "hijacked", false)
		if reply := Post(t, server.Server, "1"); reply.Status != http.StatusConflict {
			t.Errorf("a repeat gets %+v", reply)
		}
		server.expectRuns(t, 1)
	})

	t.Run("early hints", func(t *testing.T) {
		t.Parallel()
		for name, guards := range map[string][]M{"bare": nil, "guarded": {v.New(Once(t))}} {
			server := v.start(t, App[M]{Route: guards, Handler: func(c Context) error {
				v.Beneath(c).WriteHeader(http.StatusEarlyHints) // Echo's own would take it for the answer
				return c.JSON(http.StatusCreated, "done")
			}})
			hints := make(chan int, 1)
			trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
				hints <- code
				return nil
			}}
			reply := Post(t, server.Server, "1", func(r *http.Request) {
				*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
			})
			reply.expect(t, http.StatusCreated, `"done"`, false)
			if got := await(t, "the hint", hints); got != http.StatusEarlyHints {
				t.Errorf("%s: the hint is %d", name, got)
			}
		}
	})
}

func answerOn(connection net.Conn, buffered *bufio.ReadWriter) error {
	if _, err := buffered.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nhijacked"); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return connection.Close()
}
