package httpmw

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
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

	outer    http.Header // the headers to keep as outer middleware set them
	status   int         // 0 until the handler wrote its header
	header   http.Header // as they were when the handler wrote its header
	body     []byte
	passed   bool // the answer goes straight through
	hijacked bool
}

func newRecorder(under http.ResponseWriter, limit int, kept []string) *recorder {
	r := &recorder{under: under, limit: limit, kept: kept}
	for _, name := range kept {
		if values, found := under.Header()[name]; found {
			if r.outer == nil {
				r.outer = make(http.Header)
			}
			r.outer[name] = slices.Clone(values)
		}
	}
	return r
}

// Header returns the real headers, so that inner handlers see what outer middleware set.
func (r *recorder) Header() http.Header { return r.under.Header() }

// WriteHeader notes status and headers. Informational answers go through at once.
func (r *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 { // as net/http does, and here rather than later
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	switch {
	case r.passed || status < 200 && status != http.StatusSwitchingProtocols:
		r.under.WriteHeader(status)
	case r.status == 0:
		r.status = status
		r.header = r.under.Header().Clone()
	}
}

// Write keeps p, or passes it on when the answer has become too large.
func (r *recorder) Write(p []byte) (int, error) {
	r.begin(p)
	if !r.passed && len(r.body)+len(p) > r.limit {
		r.pass()
	}
	if r.passed {
		return r.under.Write(p)
	}
	if len(p) > 0 && !bodyAllowed(r.status) {
		return 0, http.ErrBodyNotAllowed
	}
	r.body = append(r.body, p...)
	return len(p), nil
}

// WriteString is Write for those who ask for an io.StringWriter.
func (r *recorder) WriteString(s string) (int, error) { return r.Write([]byte(s)) }

// begin does what net/http does at the first byte of a body: status 200 unless there is one, and a
// content type by these bytes unless there is one. It is done here because what net/http would see
// is the body in one piece.
func (r *recorder) begin(p []byte) {
	if r.status != 0 || r.passed {
		return
	}
	header := r.under.Header()
	_, typed := header["Content-Type"]
	if !typed && header.Get("Content-Encoding") == "" && header.Get("Transfer-Encoding") == "" && len(p) > 0 {
		header.Set("Content-Type", http.DetectContentType(p))
	}
	r.WriteHeader(http.StatusOK)
}

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
	if r.status == 0 && !r.passed {
		r.WriteHeader(http.StatusOK)
	}
	r.pass()
	return http.NewResponseController(r.under).Flush()
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
	if !r.passed && !r.hijacked && r.status != 0 {
		r.send()
	}
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

// result returns status and headers as the client sees them.
func (r *recorder) result() (int, http.Header) {
	if r.status == 0 {
		return http.StatusOK, r.under.Header()
	}
	return r.status, r.header
}

// passing reports that the answer went straight through, or has parts that are not kept.
func (r *recorder) passing() bool {
	if r.passed || r.header.Get("Trailer") != "" {
		return true
	}
	for name := range r.under.Header() {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	return false
}

// taken reports that the handler took over the connection.
func (r *recorder) taken() bool { return r.hijacked || r.status == http.StatusSwitchingProtocols }

// answer returns what is to be kept: of the headers, those the handler set.
func (r *recorder) answer() answer {
	status, header := r.result()
	a := answer{status: status, body: r.body}
	for _, name := range r.kept {
		values, found := header[name]
		outer, was := r.outer[name]
		if found && !(was && slices.Equal(values, outer)) {
			a.header = append(a.header, line{name, values})
		}
	}
	return a
}

// bodyAllowed goes by RFC 9110.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
