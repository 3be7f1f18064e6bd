package httpmw

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
)

// recorder is the http.ResponseWriter of a handler whose answer is to be kept. It holds the answer
// back until the handler is done and the answer saved. An answer that cannot be kept, because it is
// too large or flushed on its way, is passed on from that moment.
//
// Everything that reaches the client by another way would be missing from the record, so the
// recorder stands in the way of all of them: Flush, Hijack, ReadFrom. It offers Flush and Hijack
// only if what it wraps does (see writer).
type recorder struct {
	under http.ResponseWriter
	limit int
	kept  []string // names of the headers to keep
	head  bool     // the request is a HEAD

	outer    http.Header // the headers to keep, and trailers, as outer middleware set them
	status   int         // 0 until the handler wrote its header
	header   http.Header // as they were when the handler wrote its header
	length   int64       // the Content-Length in header, -1 for none
	body     []byte
	passed   bool // the answer goes straight through
	hijacked bool
	disowned bool // the handler did not run
}

func newRecorder(under http.ResponseWriter, head bool, limit int, kept []string) *recorder {
	r := &recorder{under: under, head: head, limit: limit, kept: kept}
	r.noteOuter()
	return r
}

// Header returns the real headers, so that inner handlers see what outer middleware set.
func (r *recorder) Header() http.Header { return r.under.Header() }

// WriteHeader notes status and headers. Informational answers go through at once, and so does one
// that is announced as too large to be kept.
func (r *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 { // as net/http does, and here rather than later
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	switch {
	case r.passed:
		r.under.WriteHeader(status)
	case r.status != 0: // the first one counts, as in net/http
	case status < 200 && status != http.StatusSwitchingProtocols:
		r.under.WriteHeader(status)
	default:
		r.status = status
		r.header = r.under.Header().Clone()
		if r.length = announced(r.header); r.length > int64(r.limit) && r.sendsBody() {
			r.pass()
		}
	}
}

// Write keeps p, or passes it on when the answer has become too large, or larger than its
// Content-Length: whether that is an error is for the real writer to say. A content type is left for
// net/http to find: it goes by the first 512 bytes, which it sees here as it would without us.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 && !r.passed {
		r.WriteHeader(http.StatusOK)
	}
	switch {
	case r.passed:
	case len(p) > 0 && !bodyAllowed(r.status):
		return 0, http.ErrBodyNotAllowed
	case len(r.body)+len(p) > r.limit, r.length >= 0 && int64(len(r.body)+len(p)) > r.length:
		r.pass()
	default:
		r.body = append(r.body, p...)
		return len(p), nil
	}
	return r.under.Write(p)
}

// WriteString is Write for those who ask for an io.StringWriter.
func (r *recorder) WriteString(s string) (int, error) { return r.Write([]byte(s)) }

// ReadFrom keeps what src has. Once that is too much, the rest is the server's own to copy, by
// sendfile where it can.
func (r *recorder) ReadFrom(src io.Reader) (int64, error) {
	var n int64
	if !r.passed {
		room := int64(r.limit - len(r.body))
		read, err := io.Copy(struct{ io.Writer }{r}, io.LimitReader(src, room+1))
		if err != nil || !r.passed {
			return read, err
		}
		n = read
	}
	read, err := io.Copy(r.under, src)
	return n + read, err
}

// Unwrap lets http.ResponseController reach deadlines and the like.
func (r *recorder) Unwrap() http.ResponseWriter { return r.under }

// FlushError passes on what there is and everything that follows: a client that is to see a part
// of the answer early cannot wait until the whole is saved.
func (r *recorder) FlushError() error {
	if canFlush(r.under) {
		if r.status == 0 && !r.passed {
			r.WriteHeader(http.StatusOK)
		}
		r.pass()
	}
	return http.NewResponseController(r.under).Flush()
}

// hijack hands over the connection, after what was written before. What is said on it from then on
// is not kept.
func (r *recorder) hijack() (net.Conn, *bufio.ReadWriter, error) {
	if r.status != 0 {
		r.pass()
	}
	connection, buffered, err := http.NewResponseController(r.under).Hijack()
	if err == nil {
		r.hijacked, r.passed = true, true
	}
	return connection, buffered, err
}

// pass ends the recording and sends what was held back.
func (r *recorder) pass() {
	if r.passed {
		return
	}
	r.passed = true
	r.send()
	r.body = nil
}

// commit sends the answer, now that it is saved.
func (r *recorder) commit() {
	if !r.passed && r.status != 0 {
		r.send()
	}
}

// close ends the recorder: what somebody still writes to it goes nowhere. After a panic that
// somebody is what the handler has started, and the answer what is made of the panic further out.
func (r *recorder) close() {
	r.passed, r.under, r.body = true, closedWriter{r.under.Header()}, nil
}

// send writes header and body as they are now.
func (r *recorder) send() {
	if header := r.under.Header(); !maps.EqualFunc(header, r.header, slices.Equal) {
		// What the handler changed after it wrote its header does not count, except for trailers:
		// the header goes out as it was, then the rest is put back.
		late := header.Clone()
		defer maps.Copy(header, late)
		clear(header)
		maps.Copy(header, r.header)
	}
	r.under.WriteHeader(r.status)
	if len(r.body) > 0 {
		_, _ = r.under.Write(r.body) // the client is gone: there is nobody to tell
	}
}

// begun reports that there is an answer, or a part of it.
func (r *recorder) begun() bool { return r.status != 0 || r.passed }

// disown is called by a middleware further in whose guards turned the request away. What it writes
// is not the handler's answer: it is not kept, as if all guards were in one middleware.
func (r *recorder) disown() {
	r.disowned = true
	if outer, found := reach[interface{ disown() }](r.under); found {
		outer.disown()
	}
}

// result returns status and headers as the client sees them.
func (r *recorder) result() (int, http.Header) {
	if r.status == 0 {
		return http.StatusOK, r.under.Header()
	}
	return r.status, r.header
}

// whole reports that all of the answer is here to be kept. It is not if a part of it went straight
// through, nor with trailers. An answer that ended before its Content-Length is one that the
// client has seen break off: without that header, as a replay, it would pass for complete.
func (r *recorder) whole() bool {
	if r.passed || r.trails() {
		return false
	}
	_, header := r.result()
	length := announced(header)
	return length < 0 || length == int64(len(r.body)) || !r.sendsBody()
}

// taken reports that the handler took over the connection.
func (r *recorder) taken() bool { return r.hijacked || r.status == http.StatusSwitchingProtocols }

// sendsBody reports that what is written becomes a body.
func (r *recorder) sendsBody() bool {
	status, _ := r.result()
	return !r.head && bodyAllowed(status)
}

// bodyAllowed goes by RFC 9110.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
