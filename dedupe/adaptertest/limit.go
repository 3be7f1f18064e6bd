package adaptertest

import (
	"strings"

	"github.com/interlock-go/interlock/dedupe"
)

var limitScenarios = []scenario{
	{"PayloadTooLarge", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}, MaxPayload: 1000})
		large := t.request("k")
		large.Text = strings.Repeat("x", 1001)
		t.refuse(dedupe.PayloadTooLarge, large)
		large.Streamed = true
		t.refuse(dedupe.PayloadTooLarge, large)
		t.wantRuns(0)
		t.proceed(1, t.request("k"))
	}},
	{"PayloadTooLargeByDefault", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		large := t.request("k")
		large.Text = strings.Repeat("x", 1<<20+1)
		t.refuse(dedupe.PayloadTooLarge, large)
		t.wantRuns(0)
	}},
	{"PayloadThatIsNotCompared", func(t *trial) {
		t.serve(Mount{Route: []*dedupe.Guard{t.account()}, MaxPayload: 1000})
		large := t.request("k")
		large.Text = strings.Repeat("x", 1001)
		t.proceed(1, large)
		t.wantRuns(1)
	}},
	{"AnswerTooLarge", func(t *trial) {
		text := strings.Repeat("x", 1001)
		t.serveWith(Mount{Route: []*dedupe.Guard{t.once()}, MaxAnswer: 1000}, func(run) Answer { return Answer{Text: text} })
		if got := t.send(t.Context(), t.request("k")); got.err != nil || got.outcome() != dedupe.Proceed || got.Body != text {
			t.Fatalf("the first answer is %+v", got)
		}
		t.refuse(dedupe.AnswerUnavailable, t.request("k"))
		t.refuse(dedupe.AnswerUnavailable, t.request("k"))
		t.refuse(dedupe.KeyReused, t.otherText("k"))
		t.wantRuns(1)
	}},
	{"AnswerUnreadable", func(t *trial) {
		damaged := &store{Store: t.store, claim: func(c dedupe.Claim, next func(dedupe.Claim) (dedupe.Claimed, error)) (dedupe.Claimed, error) {
			claimed, err := next(c)
			if len(claimed.Answer) > 0 {
				claimed.Answer = append([]byte{0xff}, claimed.Answer...)
			}
			return claimed, err
		}}
		t.store = damaged
		t.serve(Mount{Route: []*dedupe.Guard{t.once()}})
		t.proceed(1, t.request("k"))
		t.refuse(dedupe.AnswerUnavailable, t.request("k"))
		t.wantRuns(1)
	}},
}
