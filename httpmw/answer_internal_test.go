package httpmw

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"slices"
	"testing"
)

// golden is what testdata/answer-v1 was written from.
func golden() answer {
	return answer{
		status: http.StatusCreated,
		header: []line{
			{"Content-Type", nil},
			{"Link", []string{`</a>; rel="next", </b>`, "", "</c>"}},
			{"Location", []string{"/orders/1"}},
		},
		body: append([]byte("{\"id\":1}\n"), 0, 1, 0xfe, 0xff),
	}
}

// Answers outlive the version that kept them: whatever may change, these bytes stay readable.
func TestAnswerOfVersion1(t *testing.T) {
	data, err := os.ReadFile("testdata/answer-v1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeAnswer(data)
	if err != nil || !reflect.DeepEqual(got, golden()) {
		t.Errorf("got %+v, %v", got, err)
	}
	if answerVersion == 1 && !bytes.Equal(golden().encode(), data) {
		t.Errorf("the encoding has changed to %q without a new version", golden().encode())
	}
}

func TestAnswerRoundTrip(t *testing.T) {
	many := answer{status: 200, body: bytes.Repeat([]byte("x"), 100_000)}
	for i := range 300 {
		many.header = append(many.header, line{"X", slices.Repeat([]string{"v"}, i+1)})
	}
	for _, want := range []answer{
		{status: 200, body: []byte{}},
		{status: 999, header: []line{{"", []string{""}}}, body: []byte{}},
		many,
		golden(),
	} {
		got, err := decodeAnswer(want.encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

// No beginning of an answer's head is an answer, nor is what a newer version wrote.
func TestDamagedAnswer(t *testing.T) {
	data := golden().encode()
	head := len(data) - len(golden().body)
	for size := range head {
		if a, err := decodeAnswer(data[:size]); err == nil {
			t.Errorf("the first %d bytes are read as %+v", size, a)
		}
	}
	newer := bytes.Clone(data)
	newer[0]++
	for name, data := range map[string][]byte{
		"newer":                newer,
		"interim":              answer{status: 199}.encode(),
		"switching protocols":  answer{status: 101}.encode(),
		"status zero":          answer{}.encode(),
		"status over 999":      answer{status: 1000}.encode(),
		"status of many bytes": {answerVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		if a, err := decodeAnswer(data); err == nil || !reflect.DeepEqual(a, answer{}) {
			t.Errorf("%s is read as %+v, %v", name, a, err)
		}
	}
}

// Counts that are too large cost nothing: they are not believed.
func TestHugeCounts(t *testing.T) {
	start := binary.AppendUvarint([]byte{answerVersion}, 200)
	for name, data := range map[string][]byte{
		"headers": binary.AppendUvarint(slices.Clone(start), 1<<62),
		"name":    binary.AppendUvarint(append(slices.Clone(start), 1), 1<<62),
		"values":  binary.AppendUvarint(append(slices.Clone(start), 1, 1, 'X'), 1<<62),
		"value":   binary.AppendUvarint(append(slices.Clone(start), 1, 1, 'X', 1), 1<<62),
		// These counts are possible, but what follows is not what they promise.
		"headers that break off": binary.AppendUvarint(binary.AppendUvarint(slices.Clone(start), 100_000), 1<<62),
		"values that break off":  binary.AppendUvarint(binary.AppendUvarint(append(slices.Clone(start), 1, 1, 'X'), 100_000), 1<<62),
	} {
		t.Run(name, func(t *testing.T) {
			data = append(data, make([]byte, 100_000)...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := decodeAnswer(data)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("it is read")
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 100_000 {
				t.Errorf("%d bytes are allocated", got)
			}
		})
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte{answerVersion})
	f.Add(golden().encode())
	f.Add(golden().encode()[:20])
	f.Add(answer{status: 204}.encode())
	f.Add([]byte{answerVersion, 0x80, 0x80, 0x80})
	f.Add([]byte{answerVersion, 200, 1, 200, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := decodeAnswer(data)
		if err != nil {
			if !reflect.DeepEqual(a, answer{}) {
				t.Fatalf("got %+v beside %v", a, err)
			}
			return
		}
		if a.status < 200 || a.status > 999 {
			t.Errorf("status %d", a.status)
		}
		// Each header and value takes at least one byte of data, so that memory is bounded.
		count, size := len(a.header), len(a.body)
		for _, l := range a.header {
			count += len(l.values)
			size += len(l.name)
			for _, value := range l.values {
				size += len(value)
			}
		}
		if count+size > len(data) {
			t.Errorf("%d texts of %d bytes out of %d", count, size, len(data))
		}
		encoded := a.encode()
		again, err := decodeAnswer(encoded)
		if err != nil || !reflect.DeepEqual(again, a) {
			t.Errorf("got %+v, %v; want %+v", again, err, a)
		}
		if len(encoded) > len(data) {
			t.Errorf("%d bytes become %d", len(data), len(encoded))
		}
	})
}
