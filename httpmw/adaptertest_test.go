package httpmw_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/adaptertest"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

func TestAdapter(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, adaptertest.Adapter{
		Serve:    serveScenario,
		Caller:   keyfuncs.Value(callerKey{}),
		Refusals: adaptertest.HTTPRefusals(),
		Failures: []adaptertest.Failure{
			{Name: "Error404", Status: "404 Not Found", Kept: true},
			{Name: "Error401", Status: "401 Unauthorized"},
			{Name: "Error429", Status: "429 Too Many Requests"},
			{Name: "Error500", Status: "500 Internal Server Error"},
			{Name: "Problem422", Status: "422 Unprocessable Entity", Kept: true},
			{Name: "Problem409", Status: "409 Conflict"},
			{Name: "Bare410", Status: "410 Gone", Kept: true},
		},
		Survives: true,
	}, adaptertest.Stores())
}

type callerKey struct{}

func serveScenario(t testing.TB, m adaptertest.Mount) adaptertest.Client {
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := adaptertest.ReadText(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		writeScenario(w, m.Handler(r.Context(), text))
	})
	if m.Recover == adaptertest.Inside {
		handler = recovered(handler)
	}
	config := httpmw.Config{MaxBody: int64(m.MaxPayload), MaxAnswer: m.MaxAnswer}
	for _, guards := range [][]*dedupe.Guard{m.Route, m.Group} {
		if len(guards) > 0 {
			handler = wrap(t, config, handler.ServeHTTP, guards...)
		}
	}
	handler = identified(handler, m.Deadline)
	if m.Recover == adaptertest.Outside {
		handler = recovered(handler)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{id}/withdraw", handler)
	mux.Handle("POST /accounts/{id}/deposit", handler)
	mux.Handle("GET /accounts/{id}", handler)
	return adaptertest.HTTPClient(t, http1(t, mux).URL)
}

// writeScenario writes an answer as handlers do.
func writeScenario(w http.ResponseWriter, a adaptertest.Answer) {
	if a.Kept != "" {
		w.Header().Set(adaptertest.KeptHeader, a.Kept)
	}
	if a.Unkept != "" {
		w.Header().Set(adaptertest.UnkeptHeader, a.Unkept)
	}
	switch {
	case a.Err != nil:
		http.Error(w, a.Err.Error(), http.StatusInternalServerError)
	case a.Failure == "":
		fmt.Fprint(w, a.Text)
	default:
		failures[a.Failure](w)
	}
}

var failures = map[string]func(http.ResponseWriter){
	"Error404": func(w http.ResponseWriter) { http.Error(w, "no such account", http.StatusNotFound) },
	"Error401": func(w http.ResponseWriter) { http.Error(w, "who are you", http.StatusUnauthorized) },
	"Error429": func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "7")
		http.Error(w, "not so fast", http.StatusTooManyRequests)
	},
	"Error500":   func(w http.ResponseWriter) { http.Error(w, "out of order", http.StatusInternalServerError) },
	"Problem422": func(w http.ResponseWriter) { writeProblem(w, http.StatusUnprocessableEntity) },
	"Problem409": func(w http.ResponseWriter) { writeProblem(w, http.StatusConflict) },
	"Bare410":    func(w http.ResponseWriter) { w.WriteHeader(http.StatusGone) },
}

func writeProblem(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"type":"https://bank.example/short-of-money","status":%d,"balance":3}`, status)
}

// identified puts the caller where handlers look for it, and sets a deadline.
func identified(next http.Handler, deadline func(context.Context) (context.Context, context.CancelFunc)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), callerKey{}, r.Header.Get(adaptertest.CallerHeader))
		if deadline != nil {
			var cancel context.CancelFunc
			ctx, cancel = deadline(ctx)
			defer cancel()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// recovered answers in place of a handler that panics.
func recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				http.Error(w, "the handler panicked", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
