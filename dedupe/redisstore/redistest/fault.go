package redistest

import (
	"math"
	"time"
)

// forever is a delay that only [Rule.Release] ends.
const forever = time.Duration(math.MaxInt64)

// Fault is what goes wrong with a request that a [Rule] has picked.
type Fault struct {
	effect effect
	delay  time.Duration
	reply  string
}

type effect int

const (
	none effect = iota
	dropReply
	cutBeforeRequest
	cutAfterRequest
	delayRequest
	delayReply
	replyWith
	executeAndReplyWith
	staleReply
	shiftReplies
)

// The faults that take no argument.
var (
	// DropReply has the server execute the request, and the client hear nothing
	// on this connection ever after, although it stays open: what the client
	// sends further on reaches the server as well.
	DropReply = Fault{effect: dropReply}

	// CutBeforeRequest closes the connection, and the server never sees the
	// request. Requests before it in a pipeline have been answered by then.
	CutBeforeRequest = Fault{effect: cutBeforeRequest}

	// CutAfterRequest closes the connection instead of passing on the reply,
	// when that has come: the request is known to have been executed.
	CutAfterRequest = Fault{effect: cutAfterRequest}

	// StaleReply gives the client the previous reply on the connection in place
	// of this one, which is lost. Later replies are in their place again. The
	// first reply on a connection has none before it, and is passed on itself.
	StaleReply = Fault{effect: staleReply}

	// ShiftReplies gives the client the previous reply on the connection, and so
	// on from there: each request receives the reply to the one before it. That
	// is how a reply which its reader gave up waiting for disarranges all that
	// follow when the connection is reused, as in CVE-2025-29923. The first reply
	// on a connection has none before it, and is passed on twice.
	ShiftReplies = Fault{effect: shiftReplies}
)

// Delay holds the reply back, and with it the later ones on the connection.
func Delay(d time.Duration) Fault { return Fault{effect: delayReply, delay: d} }

// DelayRequest holds the request back before the server sees it, and with it the
// later ones on the connection.
func DelayRequest(d time.Duration) Fault { return Fault{effect: delayRequest, delay: d} }

// Block holds the reply back, and with it the later ones on the connection,
// until [Rule.Release], which ends a [Delay] as well.
func Block() Fault { return Delay(forever) }

// BlockRequest holds the request back before the server sees it, and with it the
// later ones on the connection, until [Rule.Release].
func BlockRequest() Fault { return DelayRequest(forever) }

// ReplyWith answers in place of the server, which never sees the request. The
// reply is in wire format: "-READONLY You can't write against a read only
// replica.\r\n".
func ReplyWith(raw string) Fault { return Fault{effect: replyWith, reply: raw} }

// ExecuteAndReplyWith has the server execute the request, and replaces its reply
// by one in wire format.
func ExecuteAndReplyWith(raw string) Fault { return Fault{effect: executeAndReplyWith, reply: raw} }
