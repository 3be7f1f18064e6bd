package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/proto"
)

var errFrame = errors.New("not a message of the Redis protocol")

// readRequest reads one request, and returns it as it came and as arguments.
// Requests are arrays of bulk strings; the inline form that people type into
// telnet is not supported.
func readRequest(r *bufio.Reader) (raw string, args []string, err error) {
	raw, err = proto.Read(r)
	if err != nil {
		return "", nil, err
	}
	args, err = proto.ReadStrings(raw)
	if err == nil && len(args) == 0 {
		err = fmt.Errorf("%w: request without a command", errFrame)
	}

	return raw, args, err
}

// readReply reads one reply as it comes, in either version of the protocol.
//
// It finds where a reply ends and leaves the rest to the client. [proto.Read]
// would do but for the types it does not know: booleans, big numbers, verbatim
// strings (as INFO replies in RESP3), bulk errors and attributes. They may be
// anywhere inside an aggregate, so it cannot be left to read what surrounds them.
func readReply(r *bufio.Reader) (string, error) {
	var reply strings.Builder
	for missing := 1; missing > 0; missing-- {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		if len(line) < 3 || !strings.HasSuffix(line, "\r\n") {
			return "", fmt.Errorf("%w: %q", errFrame, line)
		}
		reply.WriteString(line)

		kind := line[0]
		switch kind {
		case '+', '-', ':', '_', ',', '#', '(':
			continue
		}
		// A null of RESP2 has the length -1, and nothing follows it.
		length, err := strconv.Atoi(line[1 : len(line)-2])
		if err != nil || length < -1 {
			return "", fmt.Errorf("%w: %q", errFrame, line)
		}
		switch kind {
		case '$', '=', '!':
			if length >= 0 {
				_, err = io.CopyN(&reply, r, int64(length)+2)
			}
		case '*', '~', '>':
			missing += max(length, 0)
		case '%':
			missing += 2 * length
		case '|':
			// An attribute comes before what it is an attribute of.
			missing += 2*length + 1
		default:
			err = fmt.Errorf("%w: %q", errFrame, line)
		}
		if err != nil {
			return "", err
		}
	}

	return reply.String(), nil
}
