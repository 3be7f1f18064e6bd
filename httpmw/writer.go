package httpmw

import (
	"bufio"
	"net"
	"net/http"
)

// writer returns the recorder with those optional interfaces that the wrapped writer has: handlers
// ask for them to learn what the connection can do. (http.ResponseController needs no Flusher; it
// finds FlushError.)
func (r *recorder) writer() http.ResponseWriter {
	_, flushes := r.under.(http.Flusher)
	_, hijacks := reach[http.Hijacker](r.under)
	switch {
	case flushes && hijacks:
		return struct {
			*recorder
			flusher
			hijacker
		}{r, flusher{r}, hijacker{r}}
	case flushes:
		return struct {
			*recorder
			flusher
		}{r, flusher{r}}
	case hijacks:
		return struct {
			*recorder
			hijacker
		}{r, hijacker{r}}
	default:
		return r
	}
}

func canFlush(w http.ResponseWriter) bool {
	_, flushes := reach[http.Flusher](w)
	_, reports := reach[interface{ FlushError() error }](w)
	return flushes || reports
}

// reach returns w or what it wraps as a T. It looks where http.ResponseController would.
func reach[T any](w http.ResponseWriter) (found T, ok bool) {
	for {
		if found, ok = w.(T); ok {
			return found, true
		}
		outer, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return found, false
		}
		w = outer.Unwrap()
	}
}

type flusher struct{ recording *recorder }

// Flush implements http.Flusher.
func (f flusher) Flush() { _ = f.recording.FlushError() }

type hijacker struct{ recording *recorder }

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.recording.hijack() }

// closedWriter forgets what is written to it.
type closedWriter struct{ header http.Header }

func (w closedWriter) Header() http.Header       { return w.header }
func (closedWriter) WriteHeader(int)             {}
func (closedWriter) Write(p []byte) (int, error) { return len(p), nil }
func (closedWriter) FlushError() error           { return nil }
