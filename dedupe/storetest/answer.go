package storetest

import (
	"crypto/rand"

	"github.com/interlock-go/interlock/dedupe"
)

// answerCases are about the bytes: a store must not care what they are.
var answerCases = []testCase{
	{"AllBytes", func(t *trial) {
		answer := make([]byte, 256)
		for i := range answer {
			answer[i] = byte(i)
		}
		t.complete(answer, long)
		t.wantAnswer(answer)
	}},
	{"LineEnds", func(t *trial) { t.keeps("\r\n\r\n+OK\r\n$-1\r\n\n\r") }},
	{"NULBytes", func(t *trial) { t.keeps("\x00a\x00\x00b\x00") }},
	{"InvalidUTF8", func(t *trial) { t.keeps("\xff\xfe\xc3\x28\xed\xa0\x80 \xe2\x82") }},
	{"Numbers", func(t *trial) { t.keeps("0123e4") }},
	{"WordsForNothing", func(t *trial) {
		for _, answer := range []string{"nil", "null", "false", "0", "-", "(nil)", "\x00"} {
			t.digest = t.newDigest()
			t.keeps(answer)
		}
	}},
	{"EmptyIsNotNil", func(t *trial) { t.keeps("") }},
	{"NilIsATombstone", func(t *trial) {
		t.complete(nil, long)
		t.wantAnswer(nil)
	}},
	{"OneMebibyte", func(t *trial) {
		answer := make([]byte, 1<<20)
		_, _ = rand.Read(answer)
		t.complete(answer, long)
		t.wantAnswer(answer)
	}},
	{"CallerMayReuseWhatItStored", func(t *trial) {
		given := []byte("answer")
		t.complete(given, long)
		copy(given, "xxxxxx")
		t.wantAnswer([]byte("answer"))
	}},
	{"CallerMayChangeWhatItGot", func(t *trial) {
		t.complete([]byte("answer"), long)
		got := t.want(dedupe.StatusCompleted, t.newClaim(long)).Answer
		for i := range got {
			got[i] = 'x'
		}
		t.wantAnswer([]byte("answer"))
	}},
	{"CallerMayAppendToWhatItGot", func(t *trial) {
		t.complete([]byte("answer"), long)
		first := t.want(dedupe.StatusCompleted, t.newClaim(long)).Answer
		second := t.want(dedupe.StatusCompleted, t.newClaim(long)).Answer
		first = append(first, " of the first"...)
		second = append(second, " of the other"...)
		if string(first) != "answer of the first" || string(second) != "answer of the other" {
			t.Errorf("appended to: %q and %q", first, second)
		}
		t.wantAnswer([]byte("answer"))
	}},
}

// keeps completes the trial's key with answer and reads it again.
func (t *trial) keeps(answer string) {
	t.Helper()
	t.complete([]byte(answer), long)
	t.wantAnswer([]byte(answer))
}
