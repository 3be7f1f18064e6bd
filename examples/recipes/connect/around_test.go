package connect_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"

	"github.com/interlock-go/interlock/examples/recipes/accountspb/accountspbconnect"
)

// httpmw around a Connect handler: why the recipe is an interceptor. Under gRPC and gRPC-Web, answers
// are flushed and their errors are not in the status. So none can be kept, and a call that failed is
// taken for one that ran: its retry is refused.
func TestAround(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			a := &accounts{}
			a.handler = func(context.Context) error {
				if a.runs.Load() == 1 {
					return connect.NewError(connect.CodeInternal, errors.New("broken"))
				}
				return nil
			}
			_, handler := accountspbconnect.NewAccountsHandler(a)
			c := newClient(t, serve(t, httpmw.New(newOnce(t, memstore.New()))(handler)), protocol)
			if first := c.withdraw("anna", "k", 30); first.err == nil || first.err.Code() != connect.CodeInternal {
				t.Fatalf("first answer: %s", first.text())
			}
			repeat := c.withdraw("anna", "k", 30)
			if strings.HasPrefix(name, "Connect") {
				wantReceipt(t, repeat, 2, false)
				wantReceipt(t, c.withdraw("anna", "k", 30), 2, true)
				return
			}
			if repeat.err == nil || repeat.err.Code() != connect.CodeUnknown || a.runs.Load() != 1 {
				t.Errorf("%d runs; repeat: %s", a.runs.Load(), repeat.text())
			}
		})
	}
}

// And its problems are no errors of Connect's: a conflict, that a client should repeat, is UNKNOWN.
func TestAroundConflict(t *testing.T) {
	overAll(t, func(t *testing.T, protocol connect.ClientOption) {
		entered, proceed := make(chan struct{}), make(chan struct{})
		a := &accounts{handler: func(context.Context) error {
			close(entered)
			<-proceed
			return nil
		}}
		_, handler := accountspbconnect.NewAccountsHandler(a)
		c := newClient(t, serve(t, httpmw.New(newOnce(t, memstore.New()))(handler)), protocol)
		done := make(chan answer)
		go func() { done <- c.withdraw("anna", "k", 30) }()
		<-entered
		if conflict := c.withdraw("anna", "k", 30); conflict.err == nil || conflict.err.Code() != connect.CodeUnknown || len(conflict.err.Details()) > 0 {
			t.Errorf("conflict: %s", conflict.text())
		}
		close(proceed)
		<-done
	})
}
