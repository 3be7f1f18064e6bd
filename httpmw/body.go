package httpmw

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/interlock-go/interlock/dedupe"
)

// body is a request's body after it was read for a fingerprint or a field.
type body struct {
	bytes []byte
	err   error
}

// readBody reads at most limit bytes. A body that says beforehand that it is larger is not read at
// all, so that a client that waits for "100 Continue" need not send it.
func readBody(r *http.Request, limit int64) *body {
	if r.Body == nil || r.Body == http.NoBody {
		return &body{}
	}
	if r.ContentLength > limit {
		return &body{err: tooLarge(limit)}
	}
	var read bytes.Buffer
	if r.ContentLength > 0 {
		read.Grow(int(r.ContentLength) + bytes.MinRead) // one allocation, and none to find the end
	}
	_, err := read.ReadFrom(io.LimitReader(r.Body, limit+1))
	var limited *http.MaxBytesError
	switch {
	case errors.As(err, &limited):
		return &body{err: tooLarge(limited.Limit)}
	case err != nil:
		return &body{err: fmt.Errorf("%w: %w", &dedupe.KeyError{Source: "body", Problem: "could not be read"}, err)}
	case int64(read.Len()) > limit:
		return &body{err: tooLarge(limit)}
	}
	return &body{bytes: read.Bytes()}
}

func tooLarge(limit int64) error {
	return fmt.Errorf("%w: the body is over %d bytes", dedupe.ErrPayloadTooLarge, limit)
}

// again returns the body for the handler to read.
func (b *body) again(original io.ReadCloser) io.ReadCloser {
	if original == nil || original == http.NoBody {
		return original
	}
	return struct {
		*bytes.Reader
		io.Closer
	}{bytes.NewReader(b.bytes), original}
}
