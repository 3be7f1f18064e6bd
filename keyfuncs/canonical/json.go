package canonical

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"mime"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/interlock-go/interlock/dedupe"
)

// JSON is the fingerprint of a JSON body in the canonical form of RFC 8785: the same value has the same
// fingerprint in any order of its members, with any white space, any escapes in its strings and any
// form of its numbers (200, 200.0, 2e2). The order of lists and the case of names matter, and a
// member that is null is not one that is missing. Combine it with others by keyfuncs.All.
//
// The content type counts with its parameters (a version, a profile), in any order and case of their
// names, but for "charset=utf-8", which says nothing about JSON. JSON is application/json, text/json
// and what ends in +json.
//
// All else is compared byte by byte together with its content type, as by default, so that no payload is
// refused and none is taken for another:
//   - another content type or none, another charset, and messages of gRPC;
//   - what is not JSON, and JSON that decoders read in different ways, which RFC 8785 excludes: a
//     name that is there twice in one object, half a surrogate pair, invalid UTF-8;
//   - numbers with more digits than a float64 keeps, or outside its range. RFC 8785 rounds the former:
//     9007199254740993 would be the same as 9007199254740992, and a repeat with another amount would
//     get the first answer;
//   - what is nested deeper than 1,000, because to sort members takes time by size and depth.
//
// JSON fails only as [dedupe.Request.Payload] does, that is, for a body over the adapter's limit. That
// limit bounds what it costs: a pass over the body to look at its numbers, and one to format a copy.
// In bodies of 1 MiB that is about 15 ms and 2 MiB for an ordinary one, 150 ms and 50 MiB at the worst
// (100,000 members in one object); 20 µs and 3 KiB for one of 1 KiB.
func JSON(r dedupe.Request) ([]byte, error) {
	payload, err := r.Payload()
	if err != nil {
		return nil, err
	}
	contentType, ok := mediaType(payload.ContentType)
	if ok {
		var body []byte
		if body, ok = format(payload.Body); ok {
			return sum("canonical", contentType, body), nil
		}
	}
	return sum("exact", payload.ContentType, payload.Body), nil
}

// sum hashes the parts so that no two different lists of them give the same bytes to hash. The body is
// last and may be large, so that it is not copied.
func sum(form, contentType string, body []byte) []byte {
	hash := sha256.New()
	var space [256]byte
	head := space[:0]
	for _, part := range [...]string{form, contentType} {
		head = binary.AppendUvarint(head, uint64(len(part)))
		head = append(head, part...)
	}
	hash.Write(head)
	hash.Write(body)
	return hash.Sum(nil)
}

// mediaType returns the one way to write a content type, and false if that is not JSON in UTF-8.
func mediaType(contentType string) (canonical string, isJSON bool) {
	name, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || name != "application/json" && name != "text/json" && !strings.HasSuffix(name, "+json") {
		return "", false
	}
	if charset, ok := parameters["charset"]; ok {
		if !strings.EqualFold(charset, "utf-8") {
			return "", false
		}
		delete(parameters, "charset")
	}
	canonical = mime.FormatMediaType(name, parameters)
	return canonical, canonical != ""
}

// format returns the canonical form of a body, and false if it has none that keeps what it says.
func format(body []byte) (canonical []byte, ok bool) {
	if !isPlain(body) {
		return nil, false
	}
	value := jsontext.Value(bytes.Clone(body)) // formatted in place
	if value.Canonicalize() != nil {
		return nil, false
	}
	return value, true
}

// maxDepth is how deep a body may be nested to be formatted.
const maxDepth = 1_000

// isPlain reports whether a body is JSON that is not nested too deep, and in which every number is what
// its canonical form says.
func isPlain(body []byte) bool {
	// That a name is there twice is found when the body is formatted.
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	for {
		var err error
		if decoder.PeekKind() == '0' {
			var number jsontext.Value
			if number, err = decoder.ReadValue(); err == nil && !keeps(string(number)) {
				return false
			}
		} else {
			_, err = decoder.ReadToken()
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		if decoder.StackDepth() > maxDepth {
			return false
		}
	}
}

// keeps reports whether a number is the shortest decimal that gives its float64, as is the canonical
// form, but for how it is written. The digits decide: between two numbers that have the same ones lies
// a factor of ten, and no float64 is the nearest to both.
func keeps(number string) bool {
	float, err := strconv.ParseFloat(number, 64)
	if err != nil { // out of range
		return false
	}
	var space [32]byte
	return digits(number) == digits(string(strconv.AppendFloat(space[:0], float, 'e', -1, 64)))
}

// digits returns the digits of a number from the first to the last that is not 0.
func digits(number string) string {
	if end := strings.IndexAny(number, "eE"); end >= 0 {
		number = number[:end]
	}
	number = strings.TrimPrefix(number, "-")
	number = strings.Replace(number, ".", "", 1)
	return strings.Trim(number, "0")
}
