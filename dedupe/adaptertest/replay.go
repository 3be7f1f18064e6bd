package adaptertest

import (
	"time"

	"github.com/interlock-go/interlock/dedupe"
)

var replayScenarios = []scenario{
	{"RepeatGetsTheFirstAnswer", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.proceed(1, t.request("k"))
		t.replay(1, t.request("k"))
		t.wantRuns(1)
	}},
	{"EveryRepeatGetsIt", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.proceed(1, t.request("k"))
		for range 5 {
			t.replay(1, t.request("k"))
		}
		t.wantRuns(1)
	}},
	{"RepeatsTogetherGetIt", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.proceed(1, t.request("k"))
		for _, got := range t.together(crowd, func(int) Request { return t.request("k") }) {
			t.wantAnswer(1, true, got)
		}
		t.wantRuns(1)
	}},
	{"AnotherKeyRuns", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.proceed(1, t.request("k"))
		t.proceed(2, t.request("l"))
		t.replay(1, t.request("k"))
		t.replay(2, t.request("l"))
		t.wantRuns(2)
	}},
	{"QuotedKeyIsTheSameKey", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.proceed(1, t.request("k"))
		quoted := t.request("k")
		quoted.Keys[0] = `"` + quoted.Keys[0] + `"`
		t.replay(1, quoted)
		t.wantRuns(1)
	}},
	{"AnyTextIsReplayed", func(t *trial) {
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, func(r run) Answer { return Answer{Text: r.text} })
		for key, text := range map[string]string{"empty": "", "lines": "a\r\nb\x00c\n", "unicode": "½ €, 日本"} {
			r := t.request(key)
			r.Text = text
			for i := range 2 {
				if got := t.send(t.Context(), r); got.err != nil || got.Status != OK || got.Body != text || got.Replayed != (i > 0) {
					t.Fatalf("got %+v; want %q, replayed: %t", got, text, i > 0)
				}
			}
		}
		t.wantRuns(3)
	}},
	{"HeadersThatAreKeptAreReplayed", func(t *trial) {
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}}, func(r run) Answer {
			return Answer{Text: textOf(r.number), Kept: "/receipts/1", Unkept: "of one request"}
		})
		if got := t.proceed(1, t.request("k")); got.Kept != "/receipts/1" || got.Unkept != "of one request" {
			t.Fatalf("the first answer is %+v", got)
		}
		if got := t.replay(1, t.request("k")); got.Kept != "/receipts/1" || got.Unkept != "" {
			t.Fatalf("the replay is %+v", got)
		}
		t.wantRuns(1)
	}},
	{"HandlerReadsThePayload", func(t *trial) {
		texts := make(chan string, 1)
		t.serveWith(Mount{Group: []*dedupe.Guard{t.account()}, Route: []*dedupe.Guard{t.once()}}, func(r run) Answer {
			texts <- r.text
			return r.answer()
		})
		t.proceed(1, t.request("k"))
		if got := receive(t, texts, "the payload"); got != t.request("k").Text {
			t.Fatalf("the handler read %q", got)
		}
		t.wantRuns(1)
	}},
	{"EndsWithTheRetention", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once(dedupe.WithRetention(time.Second))}})
		t.proceed(1, t.request("k"))
		t.wantAnswer(2, false, t.until(t.request("k"), dedupe.Replay))
		t.wantRuns(2)
	}},
}
