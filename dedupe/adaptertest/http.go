package adaptertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

// The headers with an [Answer]'s Kept and Unkept, under frameworks on top of net/http.
const (
	KeptHeader   = "Location"
	UnkeptHeader = "Set-Cookie"
)

// HTTPRefusals returns [Adapter.Refusals] of frameworks on top of net/http.
func HTTPRefusals() map[dedupe.Outcome]string {
	return map[dedupe.Outcome]string{
		dedupe.InFlight:          "409 Conflict",
		dedupe.Locked:            "409 Conflict",
		dedupe.KeyReused:         "422 Unprocessable Entity",
		dedupe.KeyMissing:        "400 Bad Request",
		dedupe.KeyInvalid:        "400 Bad Request",
		dedupe.PayloadTooLarge:   "413 Request Entity Too Large",
		dedupe.AnswerUnavailable: "409 Conflict",
		dedupe.Uncertain:         "409 Conflict",
		dedupe.StoreUnavailable:  "503 Service Unavailable",
	}
}

// HTTPClient returns a client of a server on top of net/http, which has the routes
// "POST /accounts/{id}/withdraw", "POST /accounts/{id}/deposit" and "GET /accounts/{id}".
func HTTPClient(t testing.TB, server string) Client {
	// Go's transport sends a request with an idempotency key again when a connection that it used
	// before breaks. A connection for each request is never used before.
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, ExpectContinueTimeout: patience}
	t.Cleanup(transport.CloseIdleConnections)
	return &httpClient{server, transport}
}

type httpClient struct {
	server    string
	transport http.RoundTripper
}

// httpBody is the JSON body of a request.
type httpBody struct {
	Other string `json:"to,omitempty"`
	Text  string `json:"text"`
}

// ReadText reads the body of a request to its end and returns the [Request.Text].
func ReadText(body io.Reader) (string, error) {
	read, err := io.ReadAll(body)
	if err != nil || len(read) == 0 {
		return "", err
	}
	var decoded httpBody
	err = json.Unmarshal(read, &decoded)
	return decoded.Text, err
}

func (c *httpClient) Send(ctx context.Context, r Request) (Reply, error) {
	sent, err := c.request(ctx, r)
	if err != nil {
		return Reply{}, err
	}
	response, err := c.transport.RoundTrip(sent)
	if err != nil {
		return Reply{}, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Reply{}, err
	}
	return readReply(response, body), nil
}

func (c *httpClient) request(ctx context.Context, r Request) (*http.Request, error) {
	method, path, body := http.MethodPost, "/accounts/"+url.PathEscape(r.Resource), []byte(nil)
	switch r.Operation {
	case Withdraw:
		path += "/withdraw"
	case Deposit:
		path += "/deposit"
	case Look:
		method = http.MethodGet
	}
	if r.Operation != Look {
		var err error
		if body, err = json.Marshal(httpBody{r.Other, r.Text}); err != nil {
			return nil, err
		}
	}
	sent, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if r.Streamed {
		sent.ContentLength = -1
	}
	sent.Header.Set("Content-Type", "application/json")
	if len(body) > 100_000 { // a server that refuses to read so much resets the connection, and the refusal is lost
		sent.Header.Set("Expect", "100-continue")
	}
	if len(r.Keys) > 0 {
		sent.Header[http.CanonicalHeaderKey(KeyHeader)] = r.Keys
	}
	if r.Caller != "" {
		sent.Header.Set(CallerHeader, r.Caller)
	}
	return sent, nil
}

func readReply(response *http.Response, body []byte) Reply {
	r := Reply{
		Replayed: response.Header.Get("Idempotent-Replayed") == "true",
		Status:   strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode),
		Body:     string(body),
		Kept:     response.Header.Get(KeptHeader),
		Unkept:   response.Header.Get(UnkeptHeader),
	}
	if after := response.Header.Get("Retry-After"); after != "" {
		seconds, err := strconv.Atoi(after)
		if err != nil {
			r.Flaw = "Retry-After: " + after
		}
		r.RetryAfter = time.Duration(seconds) * time.Second
	}
	if response.StatusCode == http.StatusOK {
		r.Status = OK
		return r
	}
	r.Body = response.Header.Get("Content-Type") + "\n" + r.Body
	readProblem(&r, response, body)
	return r
}

// readProblem looks for a problem of the adapter's.
func readProblem(r *Reply, response *http.Response, body []byte) {
	var problem struct {
		Type, Title, Detail string
		Status              int
		Retryable           *bool
	}
	if json.Unmarshal(body, &problem) != nil {
		return
	}
	name, ours := strings.CutPrefix(problem.Type, "https://github.com/interlock-go/interlock/blob/main/httpmw/PROBLEMS.md#")
	if !ours {
		return
	}
	outcome, known := OutcomeNamed(name, dedupe.Outcome.String)
	switch {
	case !known:
		r.Flaw = "the type is unknown"
	case response.Header.Get("Content-Type") != "application/problem+json",
		response.Header.Get("Cache-Control") != "no-store",
		problem.Status != response.StatusCode,
		problem.Title == "",
		problem.Retryable == nil || *problem.Retryable != outcome.Retryable():
		r.Flaw = fmt.Sprintf("a member of the problem or one of the headers: %v", response.Header)
	}
	r.Refused, r.Detail = outcome, problem.Detail
}
