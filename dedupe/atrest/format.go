package atrest

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/dedupe"
)

// marked reports whether data begins with mark or breaks off within it. Encoders leave no other
// answer as it is, and so decoders know what is theirs. A mark begins with a byte that no UTF-8 text
// contains and that no adapter's answer begins with.
func marked(data []byte, mark string) bool {
	n := min(len(data), len(mark))
	return n > 0 && string(data[:n]) == mark[:n]
}

// present returns answer, and never nil: that would be a tombstone.
func present(answer []byte) []byte {
	if answer == nil {
		return []byte{}
	}
	return answer
}

func unreadable(format string, args ...any) error {
	return fmt.Errorf("atrest: %w: %s", dedupe.ErrRecordUnreadable, fmt.Sprintf(format, args...))
}

var errOptionNil = errors.New("an option is nil; leave it out")

// invalid returns what a constructor found, each with the constructor's name.
func invalid(constructor string, found []error) error {
	named := make([]error, len(found))
	for i, err := range found {
		named[i] = fmt.Errorf("atrest.%s: %w", constructor, err)
	}
	return errors.Join(named...)
}
