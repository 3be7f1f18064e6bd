package canonical_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"

	"github.com/interlock-go/interlock/keyfuncs/canonical"
)

// request is a dedupe.Request of which only the payload is looked at.
type request struct {
	dedupe.Request

	payload dedupe.Payload
	err     error
}

func (r request) Payload() (dedupe.Payload, error) { return r.payload, r.err }
func (request) Context() context.Context           { return context.Background() }

const jsonType = "application/json"

func withPayload(contentType, body string) request {
	return request{payload: dedupe.Payload{Target: "POST /", ContentType: contentType, Body: []byte(body)}}
}

func fingerprint(t testing.TB, r request) string {
	t.Helper()
	covered, err := canonical.JSON(r)
	if err != nil || len(covered) != 32 {
		t.Fatalf("got %x, %v", covered, err)
	}
	return string(covered)
}

func wantSame(t *testing.T, requests ...request) {
	t.Helper()
	for _, r := range requests[1:] {
		if fingerprint(t, r) != fingerprint(t, requests[0]) {
			t.Errorf("two fingerprints: %.200q and %.200q", requests[0].payload, r.payload)
		}
	}
}

func wantApart(t *testing.T, requests ...request) {
	t.Helper()
	seen := map[string]request{}
	for _, r := range requests {
		covered := fingerprint(t, r)
		if other, ok := seen[covered]; ok {
			t.Errorf("one fingerprint: %.200q and %.200q", other.payload, r.payload)
		}
		seen[covered] = r
	}
}

func bodies(contentType string, texts ...string) []request {
	requests := make([]request, len(texts))
	for i, text := range texts {
		requests[i] = withPayload(contentType, text)
	}
	return requests
}

func TestJSON(t *testing.T) {
	wantSame(t, bodies(jsonType,
		`{"amount":200,"to":{"iban":"DE02","name":"Zoë"}}`,
		`{"to":{"name":"Zoë","iban":"DE02"},"amount":200}`,
		"{ \"amount\" : 200.00,\r\n\t\"to\" : {\"iban\":\"DE02\",\"name\":\"Zo\\u00eb\"} }\n",
		`{"\u0061mount":2e2,"to":{"iban":"\u0044E02","name":"Zoë"}}`,
	)...)
	wantApart(t, bodies(jsonType,
		`{"a":1}`, `{"a":2}`, `{"A":1}`, `{"a":"1"}`, `{"a":true}`, `{"a":null}`, `{}`, `{"a":[1]}`, `{"a":{}}`, `{"a":""}`, `{"b":1}`, `{"a":1.5}`, `{"a":-1}`,
		`{"a":1,"b":2}`, `{"a":2,"b":1}`, `[1,2]`, `[2,1]`, `[12]`, `[[1],2]`, `[]`, `null`, `1`, `"1"`, `"\u00e9"`, `"e\u0301"`, `"a b"`, `"ab"`,
		`{"a":{"b":1},"c":2}`, `{"a":{"b":1,"c":2}}`,
	)...)
}

// Large numbers that RFC 8785 rounds to one are not one amount.
func TestJSONKeepsNumbersApart(t *testing.T) {
	wantApart(t, bodies(jsonType, `[9007199254740992]`, `[9007199254740993]`, ` [9007199254740993]`, `[1e309]`, `[2e309]`, `[1.7976931348623157e308]`, `[1.7976931348623157e309]`, `[0]`, `[1e-400]`)...)
}

func TestJSONOfContentType(t *testing.T) {
	const body, written = `{"a":1,"b":2}`, `{"b":2, "a":1.0}`
	for _, same := range []string{jsonType, "Application/JSON", jsonType + ";charset=utf-8", jsonType + `; CHARSET="UTF-8"`, jsonType + ";"} {
		wantSame(t, withPayload(jsonType, body), withPayload(same, body), withPayload(same, written))
	}
	wantSame(t, withPayload("application/x+json;v=1;p=2", body), withPayload(`application/x+json; P="2"; charset=utf-8; v=1`, written))
	wantSame(t, withPayload("text/json", body), withPayload("text/json", written))
	wantApart(t, withPayload(jsonType+";v=1", "12"), withPayload(jsonType+";v=11", "2"))
	apart := []request{}
	for _, contentType := range []string{
		jsonType, "text/json", "application/problem+json", jsonType + ";v=1", jsonType + ";v=2", jsonType + `;v="1;p=2"`, jsonType + ";v=1;p=2",
		// Byte by byte:
		jsonType + ";charset=utf-16", jsonType + ";charset", jsonType + ";charset=utf-8;charset=utf-16", "application/jsonl", "application/json-seq", "text/plain", "application/x-www-form-urlencoded",
		"bank.v1.Transfer", "json", "",
	} {
		apart = append(apart, withPayload(contentType, body))
	}
	wantApart(t, apart...)
	for _, r := range apart[7:] {
		wantApart(t, r, withPayload(r.payload.ContentType, written), withPayload(r.payload.ContentType+" ", body))
	}
}

// What has no canonical form is compared byte by byte.
func TestJSONOfOtherBodies(t *testing.T) {
	for _, text := range []string{"", "{", `{"a":1,"a":2}`, `"\ud83d"`, "\"\xff\"", "\x1f\x8b\x08"} {
		wantSame(t, withPayload(jsonType, text), withPayload(jsonType, text))
		wantApart(t, withPayload(jsonType, text), withPayload(jsonType, text+" "), withPayload(jsonType, "\n"+text), withPayload(jsonType+";charset=utf-8", text))
	}
}

func TestJSONPassesErrors(t *testing.T) {
	if covered, err := canonical.JSON(request{err: dedupe.ErrPayloadTooLarge}); covered != nil || err != dedupe.ErrPayloadTooLarge {
		t.Errorf("got %x, %v", covered, err)
	}
}

// adversarial are bodies of a mebibyte that cost as much as their author could make them.
func adversarial() map[string]string {
	const size = 1 << 20
	var members, nested strings.Builder
	for i := 0; members.Len() < size; i++ {
		fmt.Fprintf(&members, `"%x":0,`, (i*7919)%1_000_003)
	}
	const depth = 990
	for range depth {
		nested.WriteString(`{"b":[` + strings.Repeat("0,", 500) + `0],"a":`)
	}
	return map[string]string{
		"string":  `"` + strings.Repeat("a", size) + `"`,
		"escapes": `"` + strings.Repeat(`\u0000`, size/6) + `"`,
		"numbers": "[" + strings.Repeat("1e20,", size/5) + "1]",
		"digits":  "[0." + strings.Repeat("3", size) + "]",
		"members": "{" + members.String() + `"z":1}`,
		"nested":  nested.String() + "1" + strings.Repeat("}", depth),
		"open":    strings.Repeat("[", size),
		"names":   strings.Repeat(`{"":`, size/4),
	}
}

// What a body of the largest size can cost is bounded, and the body itself, which the handler reads
// next, is left alone with the memory behind it.
func TestJSONCostsLittle(t *testing.T) {
	for name, text := range adversarial() {
		space := append([]byte(text), "behind it"...)
		r := request{payload: dedupe.Payload{ContentType: jsonType, Body: space[:len(text)]}}
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		fingerprint(t, r)
		runtime.ReadMemStats(&end)
		allocated := end.TotalAlloc - start.TotalAlloc
		t.Logf("%s: %d KiB allocated", name, allocated>>10)
		if allocated > 80<<20 {
			t.Errorf("%s: allocated %d bytes", name, allocated)
		}
		if string(space) != text+"behind it" {
			t.Errorf("%s: the payload was modified", name)
		}
	}
}

// valueOf reads JSON as a handler would; numbers become the decimals that they are.
func valueOf(t *testing.T, body []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	return decimals(value)
}

func decimals(value any) any {
	switch value := value.(type) {
	case json.Number:
		number, _ := new(big.Rat).SetString(value.String())
		return number.RatString()
	case []any:
		for i := range value {
			value[i] = decimals(value[i])
		}
	case map[string]any:
		for name := range value {
			value[name] = decimals(value[name])
		}
	case string:
		return `"` + value
	}
	return value
}

// isCanonical reports whether a body is compared by its value: white space then makes no difference.
func isCanonical(t *testing.T, body []byte) bool {
	t.Helper()
	return fingerprint(t, withPayload(jsonType, string(body))) == fingerprint(t, withPayload(jsonType, " "+string(body)))
}

func seeds(f *testing.F, add func(text string)) {
	f.Helper()
	for _, text := range []string{
		`{"amount":200,"to":{"iban":"DE02","name":"Zo\u00eb"}}`, `{"to":{"name":"Zoë","iban":"DE02"},"amount":2.00e2}`,
		`[9007199254740993,1e400,-0,0.1,1E-7,1e21]`, `{"a":1,"a":2}`, `{"\ud83d\ude00":1,"\ufb33":2}`, `"\ude00\ud83d"`, "\"\xff\"", `[[[{}]]]`, `{"":{"":[null,true,false,""]}}`,
		` [1,2] `, `1 2`, ``, "\ufeff{}", `{"a":"\u2028\b\f\n\r\t\"\\\/"}`, `[5e-324,1.7976931348623157e+308]`,
	} {
		add(text)
	}
}

// FuzzJSON checks that two bodies have one fingerprint only if they are the same bytes or say the same.
func FuzzJSON(f *testing.F) {
	seeds(f, func(one string) {
		seeds(f, func(two string) { f.Add([]byte(one), []byte(two), jsonType, jsonType+";charset=utf-8") })
	})
	f.Fuzz(func(t *testing.T, one, two []byte, oneType, twoType string) {
		a, b := withPayload(oneType, string(one)), withPayload(twoType, string(two))
		same := fingerprint(t, a) == fingerprint(t, b)
		if !bytes.Equal(a.payload.Body, one) {
			t.Error("the payload was modified")
		}
		if oneType == twoType && bytes.Equal(one, two) {
			if !same {
				t.Error("two fingerprints of one payload")
			}
			return
		}
		if !same {
			return
		}
		if !isCanonical(t, one) || !isCanonical(t, two) || !reflect.DeepEqual(valueOf(t, one), valueOf(t, two)) {
			t.Errorf("one fingerprint of %q: %q and %q: %q", oneType, one, twoType, two)
		}
	})
}

// FuzzJSONRewritten checks that a body has the same fingerprint however it is written, and another one
// when it says something else.
func FuzzJSONRewritten(f *testing.F) {
	seeds(f, func(text string) { f.Add([]byte(text)) })
	f.Fuzz(func(t *testing.T, body []byte) {
		if !isCanonical(t, body) {
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		want := fingerprint(t, withPayload(jsonType, string(body)))
		if rewritten := rewrite(value); fingerprint(t, withPayload(jsonType, rewritten)) != want {
			t.Errorf("%q and %q have two fingerprints", body, rewritten)
		}
		if other := rewrite([]any{value}); fingerprint(t, withPayload(jsonType, other)) == want {
			t.Errorf("%q and %q have one fingerprint", body, other)
		}
	})
}

// rewrite writes a value with its members in descending order, every character of a string escaped, and
// every number with an exponent.
func rewrite(value any) string {
	switch value := value.(type) {
	case json.Number:
		float, _ := value.Float64()
		return strconv.FormatFloat(float, 'E', -1, 64)
	case string:
		var escaped strings.Builder
		for _, c := range value {
			if c < 1<<16 {
				fmt.Fprintf(&escaped, `\u%04X`, c)
			} else {
				escaped.WriteRune(c)
			}
		}
		return `"` + escaped.String() + `"`
	case []any:
		elements := make([]string, len(value))
		for i := range value {
			elements[i] = rewrite(value[i])
		}
		return "[ " + strings.Join(elements, "\n,\t") + " ]"
	case map[string]any:
		members := make([]string, 0, len(value))
		for name := range value {
			members = append(members, rewrite(name)+" : "+rewrite(value[name]))
		}
		slices.Sort(members)
		slices.Reverse(members)
		return "{\r\n" + strings.Join(members, " ,") + "}"
	default:
		text, _ := json.Marshal(value)
		return string(text)
	}
}

func ExampleJSON() {
	var covers keyfuncs.Fingerprint = canonical.JSON // without parentheses

	first, _ := covers(withPayload("application/json", `{"amount":200,"to":"DE02"}`))
	repeat, _ := covers(withPayload("application/json; charset=utf-8", `{"to": "DE02", "amount": 200.00}`))
	other, _ := covers(withPayload("application/json", `{"amount":300,"to":"DE02"}`))
	fmt.Println(bytes.Equal(first, repeat), bytes.Equal(first, other))
	// Output: true false
}

func BenchmarkJSON(b *testing.B) {
	order := `{"id":"8e03978e","lines":[` + strings.Repeat(`{"item":"A-7","quantity":3,"price":12.50},`, 24) + `{}],"to":"DE02"}`
	bodies := adversarial()
	bodies["1 KiB"] = order
	bodies["1 MiB"] = `[` + strings.Repeat(order+",", 1<<20/len(order)) + `{}]`
	for name, text := range bodies {
		b.Run(name, func(b *testing.B) {
			r := withPayload(jsonType, text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				fingerprint(b, r)
			}
		})
	}
}
