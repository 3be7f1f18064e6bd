package httpmw

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
)

// Config is how requests and answers are translated between net/http and the guards. The zero
// value has every default. What is decided, and when, is the guards' business.
type Config struct {
	// MaxBody is the most that is read of a request's body for its fingerprint or a field, in
	// bytes; a larger one is refused with 413. It is held in memory while the handler runs. Bodies
	// that no guard looks at are not read. At most 1 GiB; the default is 1 MiB.
	MaxBody int64

	// MaxAnswer is the largest answer that is kept, in bytes of its body. A larger one goes through
	// to the client, and repeats are told that the request ran but its answer is not there. Answers
	// are held in memory until the handler returns, and in the store for the retention. At most
	// 1 GiB; the default is 1 MiB.
	MaxAnswer int

	// Keep decides which answers are kept; what is not kept runs again. The default is
	// [DefaultKeep].
	Keep func(status int, header http.Header) bool

	// KeepHeaders names headers that are kept and replayed beyond [DefaultKeepHeaders]. Cookies,
	// credentials, hop-by-hop headers, Date and Content-Length are refused: they belong to one
	// request. The default is none.
	KeepHeaders []string

	// Refuse writes the answer to a request that was turned away. The default is [WriteProblem].
	Refuse func(http.ResponseWriter, *http.Request, *dedupe.Refusal)

	// Operation names what a request asks for; it must not contain path arguments. The default is
	// the method and the pattern of http.ServeMux, and the path itself where there is no pattern:
	// give one for routers that do not set http.Request.Pattern. See also [Exchange].
	Operation func(*http.Request) string

	// Param returns a path parameter, "" for none. The default is http.Request.PathValue. See also
	// [Exchange].
	Param func(r *http.Request, name string) string

	// BodyTooLarge recognizes the error with which a limit further out ends a body that is over it;
	// the request is then refused with 413. The default recognizes [http.MaxBytesError] only, which
	// is always recognized.
	BodyTooLarge func(error) bool
}

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// withDefaults returns c with every default filled in, or an error that names each bad field.
func (c Config) withDefaults() (Config, error) {
	var found []error
	if c.MaxBody < 0 || c.MaxBody > gibibyte {
		found = append(found, fmt.Errorf("httpmw.Config: MaxBody is %d; it must be from 1 to 1 GiB, and 0 is the default of 1 MiB", c.MaxBody))
	}
	if c.MaxAnswer < 0 || c.MaxAnswer > gibibyte {
		found = append(found, fmt.Errorf("httpmw.Config: MaxAnswer is %d; it must be from 1 to 1 GiB, and 0 is the default of 1 MiB", c.MaxAnswer))
	}
	for _, name := range c.KeepHeaders {
		if reason := neverKept(name); reason != "" {
			found = append(found, fmt.Errorf("httpmw.Config: KeepHeaders has %q, which %s; leave it out", name, reason))
		}
	}
	if c.MaxBody == 0 {
		c.MaxBody = mebibyte
	}
	if c.MaxAnswer == 0 {
		c.MaxAnswer = mebibyte
	}
	if c.Keep == nil {
		c.Keep = DefaultKeep
	}
	if c.Refuse == nil {
		c.Refuse = WriteProblem
	}
	if c.BodyTooLarge == nil {
		c.BodyTooLarge = func(error) bool { return false }
	}
	return c, errors.Join(found...)
}

// DefaultKeep keeps answers that are verdicts on the request: 2xx, 3xx, and 4xx except 401, 403,
// 408, 409, 423, 425 and 429, which may come out otherwise next time, and 499, which proxies and RPC
// libraries write when the client has gone.
func DefaultKeep(status int, _ http.Header) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict,
		http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests, statusClientClosedRequest:
		return false
	default:
		return status >= 200 && status < 500
	}
}

const statusClientClosedRequest = 499

// DefaultKeepHeaders returns the names of the headers that are kept with an answer: those that
// describe it, and none that belong to the exchange.
func DefaultKeepHeaders() []string { return slices.Clone(defaultKeepHeaders) }

var defaultKeepHeaders = []string{
	"Accept-Ranges", "Allow", "Cache-Control", "Content-Digest", "Content-Disposition", "Content-Encoding",
	"Content-Language", "Content-Location", "Content-Range", "Content-Security-Policy", "Content-Type",
	"Etag", "Expires", "Last-Modified", "Link", "Location", "Preference-Applied", "Repr-Digest", "Vary",
	"X-Content-Type-Options",
}

// neverKept returns why a header must not be replayed, or "".
func neverKept(name string) string {
	if name == "" || strings.ContainsFunc(name, notInToken) {
		return "is not the name of a header"
	}
	switch http.CanonicalHeaderKey(name) {
	case "Set-Cookie", "Set-Cookie2", "Authorization", "Proxy-Authorization", "Authentication-Info",
		"Proxy-Authentication-Info", "Www-Authenticate", "Proxy-Authenticate":
		return "carries credentials"
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return "belongs to one connection"
	case "Date", "Content-Length", "Age":
		return "is made anew for each answer"
	case replayedHeader:
		return "tells a replay from the first answer"
	default:
		return ""
	}
}

// notInToken goes by RFC 9110, section 5.6.2.
func notInToken(c rune) bool {
	return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
}

// operation is the default of Config.Operation.
func operation(r *http.Request) string {
	if r.Pattern == "" {
		return r.Method + " " + r.URL.Path
	}
	space := strings.IndexAny(r.Pattern, " \t")
	if space < 0 { // the pattern has no method
		return r.Method + " " + r.Pattern
	}
	path := strings.TrimLeft(r.Pattern[space:], " \t")
	if r.Pattern[:space] == r.Method && r.Pattern[space:] == " "+path { // written as an operation is
		return r.Pattern
	}
	return r.Method + " " + path
}
