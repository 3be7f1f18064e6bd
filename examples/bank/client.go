package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/httpmw"
)

// client is somebody who wants an answer, and asks again for as long as the bank says that it may
// help.
type client struct {
	http  *http.Client
	token string
}

// answer is what came back in the end.
type answer struct {
	status   int
	location string
	body     string
	replayed bool
}

// pay sends an order, with an idempotency key unless that is "".
func (c *client) pay(ctx context.Context, url, key, order string) (answer, error) {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(order))
		if err != nil {
			return answer{}, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+c.token)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		a, again, err := c.send(r)
		switch {
		case err != nil:
			return a, err
		case again < 0 && a.status != http.StatusCreated:
			return a, fmt.Errorf("%s: %d %s", url, a.status, a.body)
		case again < 0:
			return a, nil
		}
		if err := pause(ctx, again); err != nil {
			return a, err
		}
	}
}

// account asks for the state of an account.
func (c *client) account(ctx context.Context, url string) (account, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return account{}, err
	}
	reply, _, err := c.send(r)
	if err != nil {
		return account{}, err
	}
	if reply.status != http.StatusOK {
		return account{}, fmt.Errorf("%s: %d %s", url, reply.status, reply.body)
	}
	var a account
	return a, json.Unmarshal([]byte(reply.body), &a)
}

// send sends one request. It also returns after which time to ask again, negative for never.
func (c *client) send(r *http.Request) (a answer, again time.Duration, err error) {
	response, err := c.http.Do(r)
	if err != nil {
		return answer{}, 0, err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return answer{}, 0, err
	}
	a = answer{
		status:   response.StatusCode,
		location: response.Header.Get("Location"),
		body:     strings.TrimSpace(string(body)),
		replayed: response.Header.Get("Idempotent-Replayed") == "true",
	}
	if response.Header.Get("Content-Type") != "application/problem+json" {
		return a, -1, nil
	}
	var p httpmw.Problem
	if err := json.Unmarshal(body, &p); err != nil || !p.Retryable {
		return a, -1, err
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	return a, time.Duration(seconds) * time.Second, err
}
