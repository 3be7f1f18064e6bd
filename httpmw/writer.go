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
	hijacks := canHijack(r.under)
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

// canHijack looks where http.ResponseController would.
func canHijack(w http.ResponseWriter) bool {
	for {
		if _, ok := w.(http.Hijacker); ok {
			return true
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = outer.Unwrap()
	}
}

type flusher struct{ recording *recorder }

// Flush implements http.Flusher.
func (f flusher) Flush() { _ = f.recording.FlushError() }

type hijacker struct{ recording *recorder }

// Hijack implements http.Hijacker. What is said on the connection from here on is not kept.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	connection, buffered, err := http.NewResponseController(h.recording.under).Hijack()
	if err == nil {
		h.recording.hijacked = true
	}
	return connection, buffered, err
}
