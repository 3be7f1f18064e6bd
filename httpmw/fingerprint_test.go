package httpmw_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

// attempt is a request with the key "k" that can be sent by several callers.
type attempt struct {
	target      string // "/pay" if it is ""
	contentType string
	header      http.Header
	body        string
}

func asJSON(body string) attempt { return attempt{contentType: "application/json", body: body} }

func (a attempt) by(caller string) *http.Request {
	target := a.target
	if target == "" {
		target = "/pay"
	}
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(a.body))
	for name, lines := range a.header {
		r.Header[http.CanonicalHeaderKey(name)] = lines
	}
	r.Header.Set("Content-Type", a.contentType)
	r.Header.Set("Authorization", "Bearer "+caller)
	r.Header.Set(keyHeader, "k")
	return r
}

// upload is an attempt at a form with a file, with a boundary of its own.
func upload(t *testing.T, content string) attempt {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	file, err := w.CreateFormFile("doc", "a.pdf")
	if err != nil {
		t.Fatal(err)
	}
	write(file, content)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return attempt{contentType: w.FormDataContentType(), body: body.String()}
}

// newBoundOnce is a Once that tells callers apart.
func newBoundOnce(t *testing.T, options ...dedupe.Option) *dedupe.Guard {
	t.Helper()
	guard, err := dedupe.Once(memstore.New(), keyfuncs.Bearer(), keyfuncs.Header(keyHeader), options...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// What a repeat must bring unchanged, by fingerprint. A repeat that does is answered by the first; one that
// does not is a mismatch, in flight and later; and neither concerns another caller with the same key.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	version := func(a attempt, version string) attempt {
		a.header = http.Header{"Api-Version": {version}}
		return a
	}
	digest := func(a attempt, digest string) attempt {
		a.header = http.Header{"X-File-Digest": {digest}}
		return a
	}
	for name, test := range map[string]struct {
		option        []dedupe.Option
		first, repeat attempt
		others        []attempt
	}{
		"exact": {
			nil,
			asJSON(`{"a":1,"b":2}`),
			asJSON(`{"a":1,"b":2}`),
			[]attempt{
				asJSON(`{"b":2,"a":1}`), asJSON(`{"a":1,"b":2} `), asJSON(""),
				{contentType: "text/plain", body: `{"a":1,"b":2}`},
				{contentType: "application/json; charset=utf-8", body: `{"a":1,"b":2}`},
				{target: "/pay?c=3", contentType: "application/json", body: `{"a":1,"b":2}`},
			},
		},
		"exact, of a form": {nil, attempt{contentType: "multipart/form-data; boundary=x", body: "--x--"}, attempt{contentType: "multipart/form-data; boundary=x", body: "--x--"}, []attempt{
			{contentType: "multipart/form-data; boundary=y", body: "--y--"}, // the same form
		}},
		"Body": {
			[]dedupe.Option{dedupe.WithFingerprint(keyfuncs.Body)},
			asJSON(`{"a":1}`),
			attempt{contentType: "application/json; charset=utf-8", body: `{"a":1}`},
			[]attempt{asJSON(`{"a":2}`), {target: "/pay?c=3", body: `{"a":1}`}},
		},
		"Fields": {
			[]dedupe.Option{dedupe.WithFingerprint(keyfuncs.Fields("amount", "to.iban"))},
			asJSON(`{"amount":200,"to":{"iban":"DE02"},"sent":"12:00:00"}`),
			asJSON(`{"sent":"12:00:07","to":{"iban":"DE02"},"amount":200}`),
			[]attempt{
				asJSON(`{"amount":300,"to":{"iban":"DE02"},"sent":"12:00:00"}`),
				asJSON(`{"amount":200,"to":{"iban":"DE03"},"sent":"12:00:00"}`),
				{target: "/pay?c=3", body: `{"amount":200,"to":{"iban":"DE02"}}`},
			},
		},
		"All": {
			[]dedupe.Option{dedupe.WithFingerprint(keyfuncs.All(
				keyfuncs.OptionalHeaders("Api-Version"), keyfuncs.ContentType, keyfuncs.Fields("a"), keyfuncs.OptionalFields("b")))},
			version(asJSON(`{"a":1}`), "2"),
			version(asJSON(`{"a":1,"b":"","c":3}`), "2"),
			[]attempt{asJSON(`{"a":1}`), version(asJSON(`{"a":1}`), "1"), version(asJSON(`{"a":1,"b":2}`), "2"), version(attempt{body: `{"a":1}`}, "2")},
		},
		"Multipart": {
			[]dedupe.Option{dedupe.WithFingerprint(keyfuncs.Multipart)},
			upload(t, "%PDF"),
			upload(t, "%PDF"),
			[]attempt{upload(t, "%pdf"), {contentType: "text/plain", body: "%PDF"}},
		},
		"Headers": {
			[]dedupe.Option{dedupe.WithFingerprint(keyfuncs.Headers("X-File-Digest"))},
			digest(upload(t, strings.Repeat("%PDF", 1<<20)), "7"), // over the limit of bodies
			digest(upload(t, strings.Repeat("%PDF", 1<<20)), "7"),
			[]attempt{digest(upload(t, "%PDF"), "8")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			entered, leave := make(chan struct{}), make(chan struct{})
			handler := wrap(t, httpmw.Config{}, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				run := runs.Add(1)
				if run == 1 {
					close(entered)
					<-leave
				}
				_, _ = fmt.Fprintf(w, "run %d with %d bytes", run, len(body))
			}, newBoundOnce(t, test.option...))

			first := make(chan reply, 1)
			go func() { first <- record(handler, test.first.by("anna")) }()
			receive(t, entered, "the first request")
			record(handler, test.repeat.by("anna")).checkRefused(t, dedupe.InFlight)
			var mismatches []string
			for _, other := range test.others {
				got := record(handler, other.by("anna"))
				got.checkRefused(t, dedupe.KeyReused)
				mismatches = append(mismatches, got.body)
			}
			other := test.others[0]
			record(handler, other.by("bert")).check(t, http.StatusOK, fmt.Sprintf("run 2 with %d bytes", len(other.body)), false)

			close(leave)
			answer := fmt.Sprintf("run 1 with %d bytes", len(test.first.body))
			receive(t, first, "the first answer").check(t, http.StatusOK, answer, false)
			record(handler, test.repeat.by("anna")).check(t, http.StatusOK, answer, true)
			for i, other := range test.others {
				got := record(handler, other.by("anna"))
				got.checkRefused(t, dedupe.KeyReused)
				if got.status != http.StatusUnprocessableEntity || got.body != mismatches[i] {
					t.Errorf("got %d %s, in flight %s", got.status, got.body, mismatches[i])
				}
			}
			record(handler, test.first.by("carl")).check(t, http.StatusOK, fmt.Sprintf("run 3 with %d bytes", len(test.first.body)), false)
			record(handler, other.by("bert")).check(t, http.StatusOK, fmt.Sprintf("run 2 with %d bytes", len(other.body)), true)
			if runs.Load() != 3 {
				t.Errorf("%d runs", runs.Load())
			}
		})
	}
}

// Requests that a fingerprint cannot tell from others do not run, and leave nothing behind.
func TestFingerprintsThatFail(t *testing.T) {
	t.Parallel()
	large := strings.Repeat(" ", 100)
	for name, test := range map[string]struct {
		fingerprint keyfuncs.Fingerprint
		bad, good   attempt
		outcome     dedupe.Outcome
		says        string
	}{
		"no field":       {keyfuncs.Fields("a"), asJSON(`{"b":1}`), asJSON(`{"a":1}`), dedupe.KeyInvalid, "field a is missing or empty"},
		"null":           {keyfuncs.Fields("a"), asJSON(`{"a":null}`), asJSON(`{"a":1}`), dedupe.KeyInvalid, "field a is missing or empty"},
		"fraction":       {keyfuncs.Fields("a"), asJSON(`{"a":1.5}`), asJSON(`{"a":1}`), dedupe.KeyInvalid, "field a is not an integer"},
		"other name":     {keyfuncs.OptionalFields("a"), asJSON(`{"A":1}`), asJSON(`{"a":1}`), dedupe.KeyInvalid, "field a is written in another case"},
		"no JSON":        {keyfuncs.OptionalFields("a"), asJSON(`{`), asJSON(`{"a":1}`), dedupe.KeyInvalid, "the body is not JSON"},
		"no header":      {keyfuncs.Headers("X-File-Digest"), asJSON(``), attempt{header: http.Header{"X-File-Digest": {"7"}}}, dedupe.KeyInvalid, "header X-File-Digest is missing or empty"},
		"large body":     {keyfuncs.Body, asJSON(large), asJSON(``), dedupe.PayloadTooLarge, ""},
		"large for type": {keyfuncs.ContentType, asJSON(large), asJSON(``), dedupe.PayloadTooLarge, ""},
		"large form":     {keyfuncs.Multipart, asJSON(large), asJSON(``), dedupe.PayloadTooLarge, ""},
		"large fields":   {keyfuncs.Fields("a"), asJSON(large), asJSON(`{"a":1}`), dedupe.PayloadTooLarge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler := wrap(t, httpmw.Config{MaxBody: 64}, func(w http.ResponseWriter, _ *http.Request) {
				write(w, "done")
			}, newBoundOnce(t, dedupe.WithFingerprint(test.fingerprint)))
			got := record(handler, test.bad.by("anna"))
			got.checkRefused(t, test.outcome)
			if !strings.Contains(got.body, test.says) {
				t.Errorf("got %s; want %q", got.body, test.says)
			}
			record(handler, test.good.by("anna")).check(t, http.StatusOK, "done", false)
		})
	}
}
