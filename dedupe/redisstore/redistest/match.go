package redistest

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"
)

// Match picks requests by their arguments, the command's name first. It is
// called by one goroutine at a time.
type Match func(args []string) bool

// Any picks every request, a new connection's greeting (HELLO) included.
func Any([]string) bool { return true }

// Command picks the requests that begin with these words, in upper or lower
// case: Command("get"), or Command("client", "setinfo").
func Command(words ...string) Match {
	return func(args []string) bool {
		return len(args) >= len(words) && slices.EqualFunc(args[:len(words)], words, strings.EqualFold)
	}
}

// Contains picks the requests with an argument that has text in it, whether a
// key, a value or a script.
func Contains(text string) Match {
	return func(args []string) bool {
		return slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, text) })
	}
}

// Script picks the runs of a script by its SHA-1 digest in hexadecimal, whether
// the request names the script (EVALSHA) or brings it (EVAL).
func Script(digest string) Match {
	return func(args []string) bool {
		if len(args) < 2 {
			return false
		}
		switch strings.ToLower(args[0]) {
		case "evalsha", "evalsha_ro":
			return strings.EqualFold(args[1], digest)
		case "eval", "eval_ro":
			sum := sha1.Sum([]byte(args[1]))
			return strings.EqualFold(hex.EncodeToString(sum[:]), digest)
		default:
			return false
		}
	}
}
