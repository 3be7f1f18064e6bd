package httpmw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := t.keyed(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper has to
		}
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		response, err := t.base.RoundTrip(sent)
		if err != nil || response == nil {
			return response, err
		}
		if sent != r && (response.Request == nil || !t.hasKey(response.Request.Header)) {
			response.Request = sent // a redirect finds its key there
		}
		if attempt == t.config.MaxAttempts || !repeatable(r) {
			return response, nil
		}
		after, refused := turnedAway(response)
		if !refused {
			return response, nil
		}
		wait, ok := t.wait(r.Context(), after, attempt)
		if !ok {
			return response, nil
		}
		if err := sleep(r.Context(), wait); err != nil {
			return nil, err
		}
		if sent, err = again(sent); err != nil {
			return nil, err
		}
	}
}

// repeatable reports whether the body of a request can be had again.
func repeatable(r *http.Request) bool {
	return r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
}

// again returns a request as it was before it was sent.
func again(r *http.Request) (*http.Request, error) {
	next := r.Clone(r.Context())
	if r.Body != nil && r.Body != http.NoBody {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		next.Body = body
	}
	return next, nil
}

// maxProblem is more than any of our problems has in bytes.
const maxProblem = 16 << 10

// turnedAway reports whether a response is one of our problems and the request may be repeated, and
// after what time. The response can be read as before; if it is one, it has nothing left to be read
// from the connection and need not be closed.
func turnedAway(response *http.Response) (after time.Duration, refused bool) {
	if response.StatusCode < 400 || Replayed(response) || response.Body == nil {
		return 0, false
	}
	if media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || media != problemType {
		return 0, false
	}
	original := response.Body
	read, err := io.ReadAll(io.LimitReader(original, maxProblem+1))
	if err != nil || len(read) > maxProblem { // the rest or the error is for who asked
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(read), original), original}
		return 0, false
	}
	_ = original.Close() // it was read to its end
	response.Body = io.NopCloser(bytes.NewReader(read))

	var problem Problem
	if json.Unmarshal(read, &problem) != nil || !problem.Retryable || !strings.HasPrefix(problem.Type, problemTypes) {
		return 0, false
	}
	return parseRetryAfter(response.Header.Get("Retry-After"), time.Now()), true
}

// parseRetryAfter is the inverse of [RetryAfter], at least a second. It reads the dates of RFC 9110
// as well, which a proxy may have made of the seconds.
func parseRetryAfter(value string, now time.Time) time.Duration {
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err == nil {
		return max(time.Second, time.Duration(seconds)*time.Second)
	}
	if errors.Is(err, strconv.ErrRange) {
		return math.MaxInt64
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(time.Second, at.Sub(now))
	}
	return time.Second
}

// wait returns how long to wait after so many refusals, if it is worth it.
func (t *Transport) wait(ctx context.Context, after time.Duration, refusals int) (time.Duration, bool) {
	if after > t.config.MaxWait {
		return 0, false
	}
	// Those who were refused together do not come back together.
	longer := rand.N(after*time.Duration(refusals)/4 + 1) //nolint:gosec // nobody gains by guessing it
	longer = min(longer, t.config.MaxWait-after)
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline) - after
		if left <= 0 {
			return 0, false
		}
		longer = min(longer, left/2) // there has to be time for an answer
	}
	return after + longer, true
}

// sleep waits, or returns why the context is over.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
