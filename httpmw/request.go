package httpmw

import (
	"context"
	"net/http"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
)

// NewRequest returns r as key functions see it, with the defaults of [Config]: for tests of a key
// function of your own.
func NewRequest(r *http.Request) dedupe.Request { return Config{}.NewRequest(r) }

// NewRequest returns r as key functions see it with the configuration. Bad fields count as unset.
func (c Config) NewRequest(r *http.Request) dedupe.Request {
	c, _ = c.withDefaults()
	return &request{config: &c, http: r}
}

// request is a [dedupe.Request]. It reads the body at most once.
type request struct {
	config   *Config
	http     *http.Request
	exchange Exchange // nil under net/http alone
	body     *body    // nil until something asked for it
}

func (r *request) Context() context.Context { return r.http.Context() }

func (r *request) Operation() string {
	switch {
	case r.config.Operation != nil:
		return r.config.Operation(r.http)
	case r.exchange != nil:
		return exchangeOperation(r.exchange, r.http)
	default:
		return operation(r.http)
	}
}

// Safe goes by RFC 9110, section 9.2.1.
func (r *request) Safe() bool {
	switch r.http.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "":
		return true
	default:
		return false
	}
}

func (r *request) Header(name string) []string {
	if strings.EqualFold(name, "Host") { // net/http takes it out of the headers
		return []string{r.http.Host}
	}
	return r.http.Header.Values(name)
}

func (r *request) Param(name string) (string, error) {
	switch {
	case r.config.Param != nil:
		return r.config.Param(r.http, name), nil
	case r.exchange != nil:
		return exchangeParam(r.exchange, r.http, name), nil
	default:
		return r.http.PathValue(name), nil
	}
}

func (r *request) Field(path string) (string, error) {
	bytes, err := r.read()
	if err != nil {
		return "", err
	}
	return field(bytes, path)
}

// Target is what the client asked for, also where middleware such as http.StripPrefix has changed the
// URL since.
func (r *request) Target() string {
	target := r.http.RequestURI
	if target == "" { // a request that no server has read
		target = r.http.URL.RequestURI()
	}
	return r.http.Method + " " + target
}

func (r *request) Payload() (dedupe.Payload, error) {
	bytes, err := r.read()
	if err != nil {
		return dedupe.Payload{}, err
	}
	return dedupe.Payload{Target: r.Target(), ContentType: r.http.Header.Get("Content-Type"), Body: bytes}, nil
}

func (r *request) Value(key any) any {
	if name, ok := key.(string); ok && r.exchange != nil {
		if value := r.exchange.Get(name); value != nil {
			return value
		}
	}
	return r.http.Context().Value(key)
}

func (r *request) read() ([]byte, error) {
	if r.body == nil {
		r.body = readBody(r.http, r.config.MaxBody, r.config.BodyTooLarge)
	}
	return r.body.bytes, r.body.err
}
