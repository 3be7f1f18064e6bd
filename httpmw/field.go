package httpmw

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
)

// field returns the field of a JSON body that the dotted path names, as text; "" when there is
// none.
//
// A key that the guard reads differently from the handler guards nothing. encoding/json matches
// names without regard to case and takes the last of several; other decoders take the first. So
// what could be read in two ways is refused: a name that is there twice, or in another case.
func field(body []byte, path string) (string, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return "", nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	text, problem := find(decoder, strings.Split(path, "."))
	if problem == "" {
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			problem = notJSON
		}
	}
	if problem != "" {
		return "", &dedupe.KeyError{Source: "field " + path, Problem: problem}
	}
	return text, nil
}

const notJSON = "cannot be found, because the body is not JSON"

// find reads the next value and returns what path names in it, and what is wrong with that.
func find(decoder *json.Decoder, path []string) (text, problem string) {
	token, err := decoder.Token()
	if err != nil {
		return "", notJSON
	}
	if len(path) == 0 {
		return scalar(token)
	}
	switch {
	case token == nil: // null has no fields
		return "", ""
	case token != json.Delim('{'):
		return "", "is looked for in something that is not an object"
	}
	found := false
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return "", notJSON
		}
		switch key, _ := name.(string); {
		case !strings.EqualFold(key, path[0]):
			var skipped json.RawMessage
			if decoder.Decode(&skipped) != nil {
				return "", notJSON
			}
			continue
		case key != path[0]:
			return "", "is written in another case"
		case found:
			return "", "is there more than once"
		}
		found = true
		if text, problem = find(decoder, path[1:]); problem != "" {
			return "", problem
		}
	}
	if _, err := decoder.Token(); err != nil {
		return "", notJSON
	}
	return text, problem
}

// scalar returns a value as the text of a key. A number has one text only if it is an integer: 7 is
// also 7.0 and 0.7e1.
func scalar(token json.Token) (text, problem string) {
	switch value := token.(type) {
	case nil:
		return "", ""
	case string:
		return value, ""
	case json.Number:
		if strings.ContainsAny(value.String(), ".eE") || value == "-0" {
			return "", "is not an integer"
		}
		return value.String(), ""
	default:
		return "", "is neither a string nor an integer"
	}
}
