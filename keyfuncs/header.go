package keyfuncs

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
)

// maxHeaderKey is how long a key from a header may be, in bytes after decoding.
const maxHeaderKey = 255

// Header returns the key function for an idempotency key in the named header or metadata key. It
// takes the two forms that clients send, and gives the same key for both:
//
//	Idempotency-Key: "8e03978e-40d5-43dd-bc93-6894a57f9324"
//	Idempotency-Key: 8e03978e-40d5-43dd-bc93-6894a57f9324
//
// The first is the String of Structured Fields (RFC 9651) that draft-ietf-httpapi-idempotency-key-header
// asks for: any printable ASCII with \" for a quotation mark and \\ for a backslash. The second is
// what most clients send: the key as it is, of printable ASCII without quotation marks and commas.
// Both have 1 to 255 bytes, counted after decoding. Case matters, white space around the value does
// not.
//
// A request without the header has no key (""). Anything else is an error, since a guess could
// give two requests one key, or one request two:
//   - an empty value or "": the client meant to send a key;
//   - two lines, even equal ones, and a comma outside quotes: proxies may join two lines with one,
//     and a retry whose key came twice would be another request;
//   - anything after the closing quotation mark: the draft defines no parameters, and ignoring one
//     would drop what somebody took for a part of the key.
//
// A client can put anyone's value into a header. That is right for idempotency keys, which a guard
// binds to a caller; it is wrong for the caller itself unless a gateway sets the header and
// removes what clients send under its name.
//
// Header panics if name is not a header name.
func Header(name string) dedupe.KeyFunc {
	if !isToken(name) {
		panic(fmt.Sprintf("keyfuncs: Header(%q): not a header name; give one such as %q", name, "Idempotency-Key"))
	}
	return func(r dedupe.Request) (string, error) {
		line, problem := singleLine(r, name)
		if line == "" && problem == "" {
			return "", nil
		}
		var key string
		if problem == "" {
			key, problem = parseKey(line)
		}
		if problem != "" {
			return "", headerError(name, problem)
		}
		return key, nil
	}
}

func headerError(name, problem string) error {
	return &dedupe.KeyError{Source: "header " + name, Problem: problem}
}

// singleLine returns the only line of a header without the white space around it, or what is wrong.
// Both are "" if the request does not have the header.
func singleLine(r dedupe.Request, name string) (line, problem string) {
	switch lines := r.Header(name); len(lines) {
	case 0:
		return "", ""
	case 1:
		line = strings.Trim(lines[0], " \t")
		if line == "" {
			return "", "is empty"
		}
		return line, ""
	default:
		return "", "has more than one line"
	}
}

// parseKey decodes a line that is not empty. One of its results is "", the other is not.
func parseKey(line string) (key, problem string) {
	if line[0] == '"' {
		key, problem = parseQuoted(line[1:])
	} else {
		key, problem = line, checkRaw(line)
	}
	switch {
	case problem != "":
		return "", problem
	case key == "":
		return "", "is empty"
	case len(key) > maxHeaderKey:
		return "", fmt.Sprintf("is longer than %d bytes", maxHeaderKey)
	}
	return key, ""
}

// parseQuoted decodes a Structured Fields String from behind its opening quotation mark.
func parseQuoted(text string) (key, problem string) {
	var decoded strings.Builder // used from the first escape on
	plain := 0                  // where what is not yet in decoded begins
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			if i+1 < len(text) {
				return "", "goes on after its closing quotation mark"
			}
			if decoded.Len() == 0 {
				return text[plain:i], ""
			}
			decoded.WriteString(text[plain:i])
			return decoded.String(), ""
		case c == '\\':
			if i+1 == len(text) || text[i+1] != '"' && text[i+1] != '\\' {
				return "", "has a backslash that escapes neither a quotation mark nor a backslash"
			}
			decoded.WriteString(text[plain:i])
			i++
			decoded.WriteByte(text[i])
			plain = i + 1
		case c < ' ' || c > '~':
			return "", "has a character that is not printable ASCII"
		}
	}
	return "", "lacks its closing quotation mark"
}

func checkRaw(text string) (problem string) {
	for i := range len(text) {
		switch c := text[i]; {
		case c == ',':
			return "has a comma outside quotation marks"
		case c == '"':
			return "has a quotation mark that does not open it"
		case c < ' ' || c > '~':
			return "has a character that is not printable ASCII"
		}
	}
	return ""
}

// isToken reports whether name is a token of RFC 9110, as header names are.
func isToken(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return name != ""
}
