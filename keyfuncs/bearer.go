package keyfuncs

import (
	"strings"

	"github.com/interlock-go/interlock/dedupe"
)

// Bearer returns the key function for the token of "Authorization: Bearer <token>", meant as the
// caller of a Once. The scheme is matched without regard to case, the token is taken as it is: any
// visible ASCII except a comma, of any length. Guards hash callers before anything leaves the
// process, so that no token gets into a store, a log or an error.
//
// A request without the header has no caller (""). Another scheme, no token behind the scheme and
// more than one line are errors.
//
// Bearer does not verify the token. Put the guard behind the authentication, or a revoked token is
// still answered with what was kept for it. And where tokens are renewed, a repeat under the new
// token comes from another caller and runs again: name the caller by what the authentication found
// ([Value], [Context]) instead.
func Bearer() dedupe.KeyFunc { return bearer }

func bearer(r dedupe.Request) (string, error) {
	const name = "Authorization"
	line, problem := singleLine(r, name)
	if line == "" && problem == "" {
		return "", nil
	}
	var token string
	if problem == "" {
		token, problem = parseBearer(line)
	}
	if problem != "" {
		return "", headerError(name, problem)
	}
	return token, nil
}

// parseBearer takes the token out of a line that is not empty. One of its results is "", the other
// is not.
func parseBearer(line string) (token, problem string) {
	scheme, token, _ := strings.Cut(line, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", "is not of the scheme Bearer"
	}
	token = strings.TrimLeft(token, " ")
	if token == "" {
		return "", "has no token"
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' || c == ',' {
			return "", "has a token with a space, a comma or a character that is not printable ASCII"
		}
	}
	return token, ""
}
