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
	bytes []byte // all of it, or what was read before err
	err   error
}

// readBody reads at most limit bytes. A body that says beforehand that it is larger is not read at
// all, so that a client that waits for "100 Continue" need not send it.
func readBody(r *http.Request, limit int64, isTooLarge func(error) bool) *body {
	if r.Body == nil || r.Body == http.NoBody {
		return &body{}
	}
	if r.ContentLength > limit {
		return &body{err: tooLarge(limit)}
	}
	var read bytes.Buffer
	if r.ContentLength > 0 {
		// One allocation, and none to find the end; but no more than a mebibyte on a client's word.
		read.Grow(int(min(r.ContentLength, mebibyte)) + bytes.MinRead)
	}
	_, err := read.ReadFrom(io.LimitReader(r.Body, limit+1))
	var limited *http.MaxBytesError
	switch {
	case errors.As(err, &limited):
		err = tooLarge(limited.Limit)
	case err != nil && isTooLarge(err):
		err = fmt.Errorf("%w: %w", dedupe.ErrPayloadTooLarge, err)
	case err != nil:
		err = fmt.Errorf("%w: %w", &dedupe.KeyError{Source: "body", Problem: "could not be read"}, err)
	case int64(read.Len()) > limit:
		err = tooLarge(limit)
	}
	return &body{bytes: read.Bytes(), err: err}
}

func tooLarge(limit int64) error {
	return fmt.Errorf("%w: the body is over %d bytes", dedupe.ErrPayloadTooLarge, limit)
}

// again returns the body for the handler to read. One that could not be read to its end is given on
// as well, because a key function may get by without it: what was read, then the rest or the error.
func (b *body) again(original io.ReadCloser) io.ReadCloser {
	if original == nil || original == http.NoBody {
		return original
	}
	if b.err != nil {
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(b.bytes), original), original}
	}
	read := &struct {
		bytes.Reader
		io.Closer
	}{Closer: original}
	read.Reset(b.bytes)
	return read
}
