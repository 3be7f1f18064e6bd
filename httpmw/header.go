package httpmw

import (
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// noteOuter notes what outer middleware has set, so that it can be told from what the handler sets.
func (r *recorder) noteOuter() {
	header := r.under.Header()
	note := func(name string) {
		if r.outer == nil {
			r.outer = make(http.Header)
		}
		r.outer[name] = slices.Clone(header[name])
	}
	for name := range header {
		if name == "Trailer" || strings.HasPrefix(name, http.TrailerPrefix) || r.keeps(name) {
			note(name)
		}
	}
	for name := range trailers(header) {
		if _, found := header[name]; found {
			note(name)
		}
	}
}

// keeps reports whether a header is to be kept. Names are not in canonical form where a handler wants
// "ETag" on the wire rather than "Etag".
func (r *recorder) keeps(name string) bool {
	return slices.Contains(r.kept, http.CanonicalHeaderKey(name))
}

// answer returns what is to be kept: of the headers, those the handler set or removed, and its
// Content-Length if it is true. That of a HEAD is the length of a body that is not there.
func (r *recorder) answer() answer {
	status, header := r.result()
	a := answer{status: status, body: r.body}
	keep := func(name string) {
		values, found := header[name]
		outer, was := r.outer[name]
		if found != was || !slices.Equal(values, outer) {
			a.header = append(a.header, line{name, values})
		}
	}
	for _, name := range r.kept {
		keep(name)
	}
	for name := range header {
		if canonical := http.CanonicalHeaderKey(name); canonical != name && slices.Contains(r.kept, canonical) {
			keep(name)
		}
	}
	if length := announced(header); length == int64(len(r.body)) || length >= 0 && r.head {
		a.header = append(a.header, line{contentLength, []string{header.Get(contentLength)}})
	}
	return a
}

const contentLength = "Content-Length"

// announced returns the Content-Length, -1 for none. One that is no length is none: net/http removes
// it.
func announced(header http.Header) int64 {
	text := header.Get(contentLength)
	if text == "" {
		return -1
	}
	length, err := strconv.ParseInt(text, 10, 64)
	if err != nil || length < 0 {
		return -1
	}
	return length
}

// trails reports that the handler sends trailers. A trailer that outer middleware adds to every answer
// is its own business, unless it is the handler that gives it its value.
func (r *recorder) trails() bool {
	_, header := r.result()
	if !slices.Equal(header["Trailer"], r.outer["Trailer"]) {
		return true
	}
	for name := range trailers(r.outer) {
		if !slices.Equal(r.under.Header()[name], r.outer[name]) {
			return true
		}
	}
	for name, values := range r.under.Header() {
		if strings.HasPrefix(name, http.TrailerPrefix) && !slices.Equal(values, r.outer[name]) {
			return true
		}
	}
	return false
}

// trailers returns the names that are declared as trailers.
func trailers(header http.Header) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, names := range header["Trailer"] {
			for name := range strings.SplitSeq(names, ",") {
				if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name != "" && !yield(name) {
					return
				}
			}
		}
	}
}
