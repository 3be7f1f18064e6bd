package adaptertest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// fault is one thing that an adapter does wrong, and the scenario that is there to find it.
type fault struct {
	name  string
	found string

	mount func(*Mount)          // how a server is set up, or nil
	reply func(Request, *Reply) // what the client sees, or nil
	serve func(Handler) Handler // what comes between the guards and the handler, or nil
}

var faults = []fault{
	{name: "a refusal has another status", found: "Conflict/RepeatInFlight", reply: onRefusal(func(_ Request, r *Reply) { r.Status = "400 Bad Request" })},
	{name: "a refusal does not name its outcome", found: "Mismatch/AfterTheFirst", reply: onRefusal(func(_ Request, r *Reply) { r.Refused = dedupe.Proceed })},
	{name: "a refusal names another outcome", found: "Conflict/ResourceLocked", reply: onRefusal(func(_ Request, r *Reply) { r.Refused = dedupe.InFlight })},
	{name: "a refusal contradicts itself", found: "Outage/RefusedUnderAOnce", reply: onRefusal(func(_ Request, r *Reply) { r.Flaw = "a flaw" })},
	{name: "a refusal tells the key", found: "Key/WithAComma", reply: onRefusal(func(sent Request, r *Reply) { r.Detail += sent.Keys[0] })},
	{name: "a refusal tells the cause", found: "Key/CauseIsNotTold", reply: onRefusal(func(_ Request, r *Reply) { r.Body += secret })},
	{name: "a refusal does not say what is wrong with the key", found: "Key/TooLong", reply: onRefusal(func(_ Request, r *Reply) { r.Detail = "" })},
	{name: "a refusal is marked as a replay", found: "Crash/Reported", reply: onRefusal(func(_ Request, r *Reply) { r.Replayed = true })},
	{name: "no refusal says when to retry", found: "Wait/TooShortForTheAnswer", reply: onRefusal(func(_ Request, r *Reply) { r.RetryAfter = 0 })},
	{name: "every refusal says when to retry", found: "Limit/AnswerTooLarge", reply: onRefusal(func(_ Request, r *Reply) { r.RetryAfter = time.Second })},
	{name: "answers say when to retry", found: "Exemption/NoGuards", reply: func(_ Request, r *Reply) { r.RetryAfter = time.Second }},
	{name: "a replay is not marked", found: "Replay/RepeatGetsTheFirstAnswer", reply: func(_ Request, r *Reply) { r.Replayed = false }},
	{name: "a first answer is marked as a replay", found: "Replay/AnotherKeyRuns", reply: func(_ Request, r *Reply) { r.Replayed = r.Refused == dedupe.Proceed }},
	{name: "a replay has no text", found: "Crowd/DuplicatesThatWait", reply: onReplay(func(r *Reply) { r.Body = "" })},
	{name: "a replay lacks what is kept", found: "Replay/HeadersThatAreKeptAreReplayed", reply: onReplay(func(r *Reply) { r.Kept = "" })},
	{name: "a replay has what is not kept", found: "Failure/KeptWithItsHeaders", reply: onReplay(func(r *Reply) { r.Unkept = "of one request" })},
	{name: "a failure is replayed as a success", found: "Failure/KeptIfItIsAVerdict", reply: onReplay(func(r *Reply) { r.Status, r.Body = OK, "" })},
	{name: "the guards of the group are left out", found: "Composition/ReplayWhileTheResourceOfTheRouteIsLocked", mount: func(m *Mount) { m.Group = nil }},
	{name: "the guards of the route are left out", found: "Failure/KeptOnTheRoute", mount: func(m *Mount) { m.Route = nil }},
	{name: "the group is inside of the route", found: "Composition/InnerRefusalIsNoVerdict", mount: func(m *Mount) { m.Group, m.Route = m.Route, m.Group }},
	{name: "guards are taken innermost first", found: "Composition/NoReplayInsideOfALockedResource", mount: func(m *Mount) {
		if len(m.Route) == 2 {
			m.Route = []*dedupe.Guard{m.Route[1], m.Route[0]}
		}
	}},
	{name: "the default of the limit of payloads is higher", found: "Limit/PayloadTooLargeByDefault", mount: func(m *Mount) { m.MaxPayload = 1 << 21 }},
	{name: "the limit of answers is ignored", found: "Limit/AnswerTooLarge", mount: func(m *Mount) { m.MaxAnswer = 0 }},
	{name: "a handler does not get the context of its lease", found: "Lease/IsInTheContext", serve: func(h Handler) Handler {
		return func(_ context.Context, text string) Answer { return h(context.Background(), text) }
	}},
	{name: "a handler runs twice", found: "Conflict/SerializeKeepsNothing", serve: func(h Handler) Handler {
		return func(ctx context.Context, text string) Answer { h(ctx, text); return h(ctx, text) }
	}},
	{name: "a handler gets no payload", found: "Replay/HandlerReadsThePayload", serve: func(h Handler) Handler {
		return func(ctx context.Context, _ string) Answer { return h(ctx, "") }
	}},
	{name: "a panic becomes an answer", found: "Panic/RecoveredOutside", serve: func(h Handler) Handler {
		return func(ctx context.Context, text string) (a Answer) {
			defer func() { _ = recover() }()
			return h(ctx, text)
		}
	}},
	{name: "an error becomes an empty answer", found: "Failure/PlainErrorIsNotKept", serve: func(h Handler) Handler {
		return func(ctx context.Context, text string) Answer {
			a := h(ctx, text)
			a.Err = nil
			return a
		}
	}},
}

// TestEveryFaultIsFound also shows that each of those scenarios passes without a fault.
func TestEveryFaultIsFound(t *testing.T) {
	t.Parallel()
	scenarios := map[string]scenario{}
	for _, group := range suite {
		for _, s := range group.scenarios {
			name := group.name + "/" + s.name
			if _, known := scenarios[name]; known {
				t.Errorf("two scenarios are named %s", name)
			}
			scenarios[name] = s
		}
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s, known := scenarios[f.found]
			if !known {
				t.Fatalf("there is no scenario %s", f.found)
			}
			if failure := record(t, f.adapter(), s); failure == "" {
				t.Errorf("%s does not find it", f.found)
			}
			if failure := record(t, fault{}.adapter(), s); failure != "" {
				t.Errorf("without a fault, %s says: %s", f.found, failure)
			}
		})
	}
}

// onRefusal is change for replies of guards that turned a request away.
func onRefusal(change func(Request, *Reply)) func(Request, *Reply) {
	return func(sent Request, r *Reply) {
		if r.Refused != dedupe.Proceed {
			change(sent, r)
		}
	}
}

// onReplay is change for replays.
func onReplay(change func(*Reply)) func(Request, *Reply) {
	return func(_ Request, r *Reply) {
		if r.Replayed {
			change(r)
		}
	}
}

// adapter returns an adapter with the fault: httpmw is what there is to have it.
func (f fault) adapter() Adapter {
	return Adapter{
		Serve:    f.mounted,
		Caller:   keyfuncs.Header(CallerHeader),
		Refusals: HTTPRefusals(),
		Failures: []Failure{
			{Name: "404", Status: "404 Not Found", Kept: true},
			{Name: "503", Status: "503 Service Unavailable"},
		},
		Survives: true,
	}
}

func (f fault) mounted(t testing.TB, m Mount) Client {
	if f.mount != nil {
		f.mount(&m)
	}
	if f.serve != nil {
		m.Handler = f.serve(m.Handler)
	}
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := ReadText(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		write(w, m.Handler(r.Context(), text))
	})
	config := httpmw.Config{MaxBody: int64(m.MaxPayload), MaxAnswer: m.MaxAnswer}
	for _, guards := range [][]*dedupe.Guard{m.Route, m.Group} {
		middleware, err := config.Middleware(guards...)
		if err != nil {
			t.Fatal(err)
		}
		handler = middleware.Wrap(handler)
	}
	mux := http.NewServeMux()
	for _, pattern := range []string{"POST /accounts/{id}/withdraw", "POST /accounts/{id}/deposit", "GET /accounts/{id}"} {
		mux.Handle(pattern, recovered(handler))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &distorted{HTTPClient(t, server.URL), f.reply}
}

func write(w http.ResponseWriter, a Answer) {
	if a.Kept != "" {
		w.Header().Set(KeptHeader, a.Kept)
	}
	if a.Unkept != "" {
		w.Header().Set(UnkeptHeader, a.Unkept)
	}
	switch {
	case a.Err != nil:
		http.Error(w, a.Err.Error(), http.StatusInternalServerError)
	case a.Failure == "404":
		http.NotFound(w, nil)
	case a.Failure == "503":
		http.Error(w, "closed", http.StatusServiceUnavailable)
	default:
		_, _ = w.Write([]byte(a.Text))
	}
}

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

// distorted is a client that sees other replies than there are.
type distorted struct {
	Client

	reply func(Request, *Reply)
}

func (c *distorted) Send(ctx context.Context, r Request) (Reply, error) {
	reply, err := c.Client.Send(ctx, r)
	if err == nil && c.reply != nil {
		c.reply(r, &reply)
	}
	return reply, err
}
