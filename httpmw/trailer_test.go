package httpmw_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
)

// A trailer that outer middleware adds to every answer is its own business, however it does.
func TestOuterTrailerIsNoReasonNotToKeep(t *testing.T) {
	for protocol, start := range protocols {
		for name, test := range map[string]struct {
			before, after string // the header that is set before the handler runs, and after
			value         string // of the first
		}{
			"declared":                {"Trailer", "Server-Timing", "X-Other, server-timing"},
			"prefixed, set early":     {http.TrailerPrefix + "Server-Timing", "", ""},
			"declared, with a value":  {"Trailer", "", "Server-Timing"},
			"prefixed, and set again": {http.TrailerPrefix + "Server-Timing", http.TrailerPrefix + "Server-Timing", "early"},
		} {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				inner := onceOver(t, func(w http.ResponseWriter, _ *http.Request) { write(w, "done") })
				var requests atomic.Int32
				server := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					number := fmt.Sprint("request;desc=", requests.Add(1))
					early, late := test.value, test.after
					if early == "" {
						early = number
					}
					if late == "" {
						late = "Server-Timing"
					}
					w.Header().Set(test.before, early)
					if test.after == "" && test.before == "Trailer" {
						w.Header().Set("Server-Timing", number)
					}
					inner.ServeHTTP(w, r)
					if test.after != "" {
						w.Header().Set(late, number)
					}
				}))
				for _, number := range []string{"1", "2"} {
					got := post(t, server)
					got.check(t, http.StatusOK, "done", number == "2")
					if timing := got.trailer.Get("Server-Timing"); timing != "request;desc="+number {
						t.Errorf("answer %s has the trailer %q", number, timing)
					}
				}
			})
		}
	}
}

// But a value that the handler gives to a trailer is missing from a replay, whoever declared it. So
// there is none.
func TestHandlersValueInAnOuterTrailer(t *testing.T) {
	for name, trailer := range map[string]string{"declared": "X-Sum", "prefixed": http.TrailerPrefix + "X-Sum"} {
		for _, early := range []string{"", "early"} {
			for protocol, start := range protocols {
				t.Run(protocol+"/"+name+early, func(t *testing.T) {
					inner := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
						write(w, page)
						w.Header().Set(trailer, "42")
					})
					server := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if name == "declared" {
							w.Header().Set("Trailer", "X-Other, X-Sum")
						}
						if early != "" {
							w.Header().Set(trailer, early)
						}
						inner.ServeHTTP(w, r)
					}))
					first := post(t, server)
					first.check(t, http.StatusOK, page, false)
					if got := first.trailer.Get("X-Sum"); got != "42" {
						t.Errorf("the first answer has the trailer %q", got)
					}
					post(t, server).checkRefused(t, dedupe.AnswerUnavailable)
				})
			}
		}
	}
}

// Trailers of an answer that is not kept are no reason to keep it from running again.
func TestTrailersOfAFailure(t *testing.T) {
	handler := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(http.StatusBadGateway)
		w.Header().Set("X-Sum", "42")
	})
	for range 2 {
		record(handler, newRecorded("k", "")).check(t, http.StatusBadGateway, "", false)
	}
}
