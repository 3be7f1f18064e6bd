package httpmw

import (
	"encoding/binary"
	"errors"
	"net/http"
)

// answer is what is kept of a response.
type answer struct {
	status int
	header []line
	body   []byte
}

// line is one header with all its values. No values means that the header is not to be sent: the
// handler kept net/http from setting it by itself, or removed what outer middleware had set.
type line struct {
	name   string
	values []string
}

// replayedHeader tells a client that it got an earlier answer again.
const replayedHeader = "Idempotent-Replayed"

// replay writes the answer. Headers are set, not added: what outer middleware put into the others
// stays the current request's.
func (a answer) replay(w http.ResponseWriter) {
	header := w.Header()
	for _, l := range a.header {
		header[l.name] = l.values
	}
	header.Set(replayedHeader, "true")
	w.WriteHeader(a.status)
	if len(a.body) > 0 {
		_, _ = w.Write(a.body) // the client is gone: there is nobody to tell
	}
}

// whole reports that the body has the length that the header says, unless head, where there is none.
func (a answer) whole(head bool) bool {
	for _, l := range a.header {
		if l.name == contentLength && !head {
			return announced(http.Header{contentLength: l.values}) == int64(len(a.body))
		}
	}
	return true
}

// answerVersion is the first byte of every encoded answer. A layout that older code would misread
// gets the next number.
const answerVersion = 1

// encode returns the answer as: version, status, the number of headers; for each its name, the
// number of its values and the values; then the body to the end. Numbers are uvarints, texts are
// preceded by their length.
func (a answer) encode() []byte {
	size := 16 + len(a.body)
	for _, l := range a.header {
		size += 4 + len(l.name)
		for _, value := range l.values {
			size += 4 + len(value)
		}
	}
	data := append(make([]byte, 0, size), answerVersion)
	data = binary.AppendUvarint(data, uint64(a.status)) //nolint:gosec // it is not negative
	data = binary.AppendUvarint(data, uint64(len(a.header)))
	for _, l := range a.header {
		data = appendText(data, l.name)
		data = binary.AppendUvarint(data, uint64(len(l.values)))
		for _, value := range l.values {
			data = appendText(data, value)
		}
	}
	return append(data, a.body...)
}

func appendText(data []byte, text string) []byte {
	return append(binary.AppendUvarint(data, uint64(len(text))), text...)
}

var errAnswer = errors.New("httpmw: the kept answer is damaged or of a newer version")

// decodeAnswer is the inverse of encode. It trusts nothing: the bytes come from a store.
func decodeAnswer(data []byte) (answer, error) {
	d := decoder{rest: data}
	if d.byte() != answerVersion {
		return answer{}, errAnswer
	}
	a := answer{status: d.number(999)}
	for range d.number(len(data)) {
		l := line{name: d.text()}
		for range d.number(len(data)) {
			if d.failed {
				break
			}
			l.values = append(l.values, d.text())
		}
		if d.failed {
			break
		}
		a.header = append(a.header, l)
	}
	if d.failed || a.status < 200 {
		return answer{}, errAnswer
	}
	a.body = d.rest
	return a, nil
}

// decoder reads from rest until something is wrong, and then returns zeros.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.failed = true
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

// number reads a number up to limit.
func (d *decoder) number(limit int) int {
	n, size := binary.Uvarint(d.rest)
	if d.failed || size <= 0 || n > uint64(limit) { //nolint:gosec // limits are not negative
		d.failed = true
		return 0
	}
	d.rest = d.rest[size:]
	return int(n) //nolint:gosec // it is at most limit
}

func (d *decoder) text() string {
	size := d.number(len(d.rest))
	if d.failed || size > len(d.rest) {
		d.failed = true
		return ""
	}
	text := string(d.rest[:size])
	d.rest = d.rest[size:]
	return text
}
