package keyfuncs_test

import (
	"context"
	"net/http"

	"github.com/interlock-go/interlock/dedupe"
)

// request is a dedupe.Request made of what a test says.
type request struct {
	ctx       context.Context
	operation string
	header    http.Header
	params    map[string]string
	fields    map[string]string
	payload   dedupe.Payload
	values    map[any]any
	err       error // of Param, Field and Payload
}

var _ dedupe.Request = request{}

func (r request) Context() context.Context {
	if r.ctx == nil {
		return context.Background()
	}
	return r.ctx
}

func (r request) Operation() string                 { return r.operation }
func (r request) Safe() bool                        { return false }
func (r request) Header(name string) []string       { return r.header.Values(name) }
func (r request) Param(name string) (string, error) { return r.params[name], r.err }
func (r request) Field(path string) (string, error) { return r.fields[path], r.err }
func (r request) Payload() (dedupe.Payload, error)  { return r.payload, r.err }

func (r request) Value(key any) any {
	if value, ok := r.values[key]; ok {
		return value
	}
	return r.Context().Value(key)
}

func withHeader(name string, lines ...string) request {
	r := request{header: http.Header{}}
	for _, line := range lines {
		r.header.Add(name, line)
	}
	return r
}
