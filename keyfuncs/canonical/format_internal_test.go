package canonical

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// Appendix B of RFC 8785.
func TestFormatNumbers(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x8000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		float := math.Float64frombits(bits)
		for _, form := range []byte("ef") {
			written := strconv.FormatFloat(float, form, -1, 64)
			if got, ok := format([]byte(written)); string(got) != want || !ok {
				t.Errorf("%s: got %s, %t; want %s", written, got, ok, want)
			}
		}
	}
}

// Numbers that are not what their canonical form says.
func TestFormatKeepsNumbers(t *testing.T) {
	for _, number := range []string{
		"9007199254740993",              // an integer between two floats
		"-9007199254740993",             //
		"12345678901234567890",          //
		"333333333.33333329",            // RFC 8785 makes 333333333.3333333 of it, in its own sample
		"0.1000000000000000055511151",   // what 0.1 is as a float
		"100000000000000000000000.5",    //
		"1e309",                         // outside the range of floats
		"-1e309",                        //
		"1.7976931348623157e309",        // with the digits of the largest one
		"1e99999999999999999999",        //
		"1e-324",                        // nearer to 0
		"4e-324",                        // rounded to 5e-324
		"1e-99999999999999999999",       //
		"0." + strings.Repeat("3", 1e5), //
	} {
		if got, ok := format([]byte(number)); ok {
			t.Errorf("%.40s became %s", number, got)
		}
	}
	for number, want := range map[string]string{
		"0": "0", "-0": "0", "0.00": "0", "-0e5": "0", "0e-99999999999999999999": "0", "1e0": "1", "10.0": "10", "1000e-3": "1", "0.1e1": "1",
		"200": "200", "2e2": "200", "2E+2": "200", "0.2e3": "200", "0.010": "0.01", "-1.50": "-1.5", "123456789012345680000": "123456789012345680000",
		"9007199254740991": "9007199254740991", "9007199254740994": "9007199254740994", "1" + strings.Repeat("0", 300): "1e+300",
	} {
		if got, ok := format([]byte(number)); string(got) != want || !ok {
			t.Errorf("%.40s: got %s, %t; want %s", number, got, ok, want)
		}
	}
}

// The samples of RFC 8785, and of its author's test data.
func TestFormatValues(t *testing.T) {
	for written, want := range map[string]string{
		`{
		  "numbers": [333333333.3333333, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
		  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
		  "literals": [null, true, false]
		}`: `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		`{"\u20ac":5,"\r":1,"\ufb33":7,"1":2,"\ud83d\ude00":6,"\u0080":3,"\u00f6":4}`: "{\"\\r\":1,\"1\":2,\"\u0080\":3,\"ö\":4,\"€\":5,\"😀\":6,\"\ufb33\":7}",
		`{"peach":1,"péché":2,"pêche":3,"sin":4}`:                                     `{"peach":1,"péché":2,"pêche":3,"sin":4}`,
		`[56,{"d":true,"10":null,"1":[]}]`:                                            `[56,{"1":[],"10":null,"d":true}]`,
		`{"a":{"d":1,"c":2},"":{}}`:                                                   `{"":{},"a":{"c":2,"d":1}}`,
		`{"\u0061":"\u00e9\u0065\u0301"}`:                                             `{"a":"ée` + "\u0301" + `"}`, // nothing is composed
		` "\u2028\u003c\u002f\b\t\n\f\r\u0000\u001f\u007f" `:                          "\"\u2028</\\b\\t\\n\\f\\r\\u0000\\u001f\u007f\"",
		" null\n": "null",
	} {
		got, ok := format([]byte(written))
		if string(got) != want || !ok {
			t.Errorf("%s: got %s, %t; want %s", written, got, ok, want)
		}
		if again, ok := format(got); string(again) != want || !ok {
			t.Errorf("%s: then got %s, %t", got, again, ok)
		}
	}
}

// What is not JSON, and what decoders read in different ways.
func TestFormatNothingElse(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for _, text := range []string{
		``, ` `, `{`, `{"a":1`, `[1] 2`, `1 2`, `{} {}`, `nul`, `{a:1}`, `{'a':1}`, `[1,]`, `[01]`, `[+1]`, `[.5]`, `[1.]`, `[0x10]`, `[NaN]`, `// a
		1`, "\ufeff1", "\"\x01\"", "\"\xff\"", "\"\xed\xa0\x80\"", "{\"\xff\":1}",
		`{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `[{"b":{"a":1,"c":2,"a":1}}]`, `{"":1,"":2}`,
		`"\ud83d"`, `"\ude00"`, `"\ude00\ud83d"`, `"\ud83dx"`, `{"\udead":1}`, `"\x"`, `"\u12"`,
		deep, strings.Repeat("[", 1<<20), strings.Repeat(`{"":`, 1<<18),
	} {
		if got, ok := format([]byte(text)); ok {
			t.Errorf("%.40q became %.40q", text, got)
		}
	}
	if _, ok := format([]byte(deep[1 : len(deep)-1])); !ok {
		t.Error("as deep as is allowed is too deep")
	}
}
