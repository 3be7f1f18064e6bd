package keyfuncs_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

func TestHeader(t *testing.T) {
	printable := make([]byte, 0, 95)
	for c := byte(' '); c <= '~'; c++ {
		printable = append(printable, c)
	}
	long := strings.Repeat("k", 255)
	slashes := strings.Repeat(`\`, 255)

	const (
		empty     = "header Idempotency-Key is empty"
		lines     = "header Idempotency-Key has more than one line"
		tooLong   = "header Idempotency-Key is longer than 255 bytes"
		character = "header Idempotency-Key has a character that is not printable ASCII"
		unclosed  = "header Idempotency-Key lacks its closing quotation mark"
		trailing  = "header Idempotency-Key goes on after its closing quotation mark"
		escape    = "header Idempotency-Key has a backslash that escapes neither a quotation mark nor a backslash"
		comma     = "header Idempotency-Key has a comma outside quotation marks"
		quote     = "header Idempotency-Key has a quotation mark that does not open it"
	)
	for _, test := range []struct {
		name    string
		lines   []string
		key     string
		problem string
	}{
		{name: "no line"},

		{name: "raw", lines: []string{"s3cret"}, key: "s3cret"},
		{name: "raw, white space around", lines: []string{" \t s3cret\t "}, key: "s3cret"},
		{name: "raw, one byte", lines: []string{"k"}, key: "k"},
		{name: "raw, case kept", lines: []string{"aBc"}, key: "aBc"},
		{name: "raw, what Structured Fields gives a meaning", lines: []string{":a=;b?1@(c)"}, key: ":a=;b?1@(c)"},
		{name: "raw, backslash", lines: []string{`s3\\cret\`}, key: `s3\\cret\`},
		{name: "raw, single quotes", lines: []string{"'s3cret'"}, key: "'s3cret'"},
		{name: "raw, longest", lines: []string{long}, key: long},
		{name: "raw, white space does not count", lines: []string{"  " + long + "  "}, key: long},
		{name: "raw, too long", lines: []string{long + "k"}, problem: tooLong},
		{name: "raw, space", lines: []string{"s3 cret"}, key: "s3 cret"},
		{name: "raw, tab", lines: []string{"s3\tcret"}, problem: character},
		{name: "raw, comma", lines: []string{"s3,cret"}, problem: comma},
		{name: "raw, joined lines", lines: []string{"s3cret, s3cret"}, problem: comma},
		{name: "raw, quote at the end", lines: []string{`s3cret"`}, problem: quote},
		{name: "raw, quote inside", lines: []string{`s3"cret`}, problem: quote},
		{name: "raw, control", lines: []string{"s3\x00cret"}, problem: character},
		{name: "raw, delete", lines: []string{"s3\x7fcret"}, problem: character},
		{name: "raw, line feed", lines: []string{"s3cret\n"}, problem: character},
		{name: "raw, UTF-8", lines: []string{"s3crét"}, problem: character},
		{name: "raw, not UTF-8", lines: []string{"s3\xffcret"}, problem: character},

		{name: "quoted", lines: []string{`"s3cret"`}, key: "s3cret"},
		{name: "quoted, white space around", lines: []string{"\t \"s3cret\" \t"}, key: "s3cret"},
		{name: "quoted, one byte", lines: []string{`"k"`}, key: "k"},
		{name: "quoted, spaces are part of it", lines: []string{`" s3 cret "`}, key: " s3 cret "},
		{name: "quoted, only a space", lines: []string{`" "`}, key: " "},
		{name: "quoted, comma", lines: []string{`"s3,cret"`}, key: "s3,cret"},
		{name: "quoted, escaped quotes", lines: []string{`"\"s3\"cret\""`}, key: `"s3"cret"`},
		{name: "quoted, escaped backslashes", lines: []string{`"\\s3\\\\cret\\"`}, key: `\s3\\cret\`},
		{name: "quoted, all printable", lines: []string{quoted(string(printable))}, key: string(printable)},
		{name: "quoted, longest", lines: []string{`"` + long + `"`}, key: long},
		{name: "quoted, longest of escapes", lines: []string{quoted(slashes)}, key: slashes},
		{name: "quoted, too long", lines: []string{`"` + long + `k"`}, problem: tooLong},
		{name: "quoted, too long after decoding", lines: []string{quoted(slashes + `\`)}, problem: tooLong},
		{name: "quoted, not closed", lines: []string{`"s3cret`}, problem: unclosed},
		{name: "quoted, only the opening quote", lines: []string{`"`}, problem: unclosed},
		{name: "quoted, closed by an escaped quote", lines: []string{`"s3cret\"`}, problem: unclosed},
		{name: "quoted, ends in an escape", lines: []string{`"s3cret\`}, problem: escape},
		{name: "quoted, other escape", lines: []string{`"s3\ncret"`}, problem: escape},
		{name: "quoted, parameter", lines: []string{`"s3cret";v=1`}, problem: trailing},
		{name: "quoted, text behind it", lines: []string{`"s3"cret`}, problem: trailing},
		{name: "quoted, joined lines", lines: []string{`"s3cret", "s3cret"`}, problem: trailing},
		{name: "quoted twice", lines: []string{`""s3cret""`}, problem: trailing},
		{name: "quoted, tab", lines: []string{"\"s3\tcret\""}, problem: character},
		{name: "quoted, control", lines: []string{"\"s3\x00cret\""}, problem: character},
		{name: "quoted, delete", lines: []string{"\"s3\x7fcret\""}, problem: character},
		{name: "quoted, UTF-8", lines: []string{`"s3crét"`}, problem: character},

		{name: "empty", lines: []string{""}, problem: empty},
		{name: "only white space", lines: []string{" \t "}, problem: empty},
		{name: "empty quoted", lines: []string{`""`}, problem: empty},

		{name: "two lines", lines: []string{"s3cret", "other"}, problem: lines},
		{name: "two equal lines", lines: []string{"s3cret", "s3cret"}, problem: lines},
		{name: "two empty lines", lines: []string{"", ""}, problem: lines},
		{name: "one line of two empty", lines: []string{"s3cret", ""}, problem: lines},
	} {
		t.Run(test.name, func(t *testing.T) {
			key, err := keyfuncs.Header("Idempotency-Key")(withHeader("idempotency-key", test.lines...))
			checkKey(t, key, err, test.key, test.problem)
		})
	}
}

// checkKey checks the result of a key function that reads a header. Keys in tests contain "s3", so
// that an error that contains one is noticed.
func checkKey(t *testing.T, key string, err error, wantKey, wantProblem string) {
	t.Helper()
	if key != wantKey {
		t.Errorf("key = %q, want %q", key, wantKey)
	}
	if wantProblem == "" {
		if err != nil {
			t.Errorf("error = %v, want none", err)
		}
		return
	}
	keyError, ok := errors.AsType[*dedupe.KeyError](err)
	if !ok || !errors.Is(err, dedupe.ErrKeyInvalid) {
		t.Fatalf("error = %#v, want a KeyError", err)
	}
	if err.Error() != wantProblem {
		t.Errorf("error = %q, want %q", err, wantProblem)
	}
	if strings.Contains(keyError.Source+keyError.Problem, "s3") {
		t.Errorf("error %q contains the key", err)
	}
}

func TestHeaderPanics(t *testing.T) {
	for _, name := range []string{"", " ", "Idempotency-Key ", "Idempotency-Key:", "Schlüssel", "a\x00"} {
		wantPanic(t, "keyfuncs: Header(", func() { keyfuncs.Header(name) })
	}
	for _, name := range []string{"x", "Idempotency-Key", "idempotency_key", "x.request-id", "X-1"} {
		keyfuncs.Header(name)
	}
}

// quoted is key as a String of Structured Fields.
func quoted(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

var (
	validKey    = regexp.MustCompile(`\A[ -~]{1,255}\z`)
	validRaw    = regexp.MustCompile(`\A[!#-+\--~](?:[ !#-+\--~]{0,253}[!#-+\--~])?\z`)
	validQuoted = regexp.MustCompile(`\A"(?:[ !#-\[\]-~]|\\["\\])+"\z`)
)

// FuzzHeader takes its argument once as a line and once as a key.
func FuzzHeader(f *testing.F) {
	for _, seed := range []string{
		"",
		"abc",
		`"abc"`,
		`""`,
		`"`,
		`"a\"b\\c"`,
		`"a\`,
		`"a\n"`,
		`"abc";v=1`,
		`"a", "b"`,
		"a, b",
		`a"b`,
		`a\b`,
		" \tabc\t ",
		`" a "`,
		`" `,
		"8e03978e-40d5-43dd-bc93-6894a57f9324",
		":YWJj:",
		"schlüssel",
		"\"\x00\"",
		"\x7f",
		strings.Repeat("k", 255),
		strings.Repeat("k", 256),
		`"` + strings.Repeat(`\\`, 255) + `"`,
		`"` + strings.Repeat(`\"`, 256) + `"`,
	} {
		f.Add(seed)
	}
	header := keyfuncs.Header("Idempotency-Key")
	parse := func(t *testing.T, lines ...string) (string, bool) {
		t.Helper()
		key, err := header(withHeader("Idempotency-Key", lines...))
		if (key == "") != (err != nil) {
			t.Fatalf("%q: key %q with error %v", lines, key, err)
		}
		if err != nil && !errors.Is(err, dedupe.ErrKeyInvalid) {
			t.Fatalf("%q: error %#v is not a KeyError", lines, err)
		}
		if err == nil && !validKey.MatchString(key) {
			t.Fatalf("%q: key %q is not 1 to 255 printable bytes", lines, key)
		}
		return key, err == nil
	}
	f.Fuzz(func(t *testing.T, text string) {
		line := strings.Trim(text, " \t")
		key, ok := parse(t, text)
		isQuoted := validQuoted.MatchString(line)
		wanted := isQuoted && len(strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(line[1:len(line)-1])) <= 255
		if wanted = wanted || validRaw.MatchString(line); ok != wanted {
			t.Fatalf("line %q: accepted %t, want %t", text, ok, wanted)
		}
		if ok {
			again, _ := parse(t, quoted(key))
			if again != key {
				t.Fatalf("line %q: key %q, quoted again it is %q", text, key, again)
			}
			if isQuoted && quoted(key) != line {
				t.Fatalf("line %q: key %q, which is written %q", text, key, quoted(key))
			}
		}

		decoded, ok := parse(t, quoted(text))
		if ok != validKey.MatchString(text) || ok && decoded != text {
			t.Fatalf("key %q: quoted form accepted %t, gives %q", text, ok, decoded)
		}
		if validRaw.MatchString(text) {
			if raw, _ := parse(t, text); raw != decoded {
				t.Fatalf("key %q: raw form gives %q, quoted form %q", text, raw, decoded)
			}
		}

		if _, ok := parse(t, text, text); ok {
			t.Fatalf("two lines %q accepted", text)
		}
		for _, comma := range []string{",", ", "} {
			if _, ok := parse(t, text+comma+text); ok && wanted {
				t.Fatalf("two lines %q joined into one accepted", text)
			}
		}
	})
}

func ExampleHeader() {
	key := keyfuncs.Header("Idempotency-Key")
	for _, lines := range [][]string{
		{`"8e03978e-40d5"`},
		{`8e03978e-40d5`},
		{},
		{`""`},
		{"8e03978e-40d5", "8e03978e-40d5"},
	} {
		fmt.Println(key(withHeader("Idempotency-Key", lines...)))
	}
	// Output:
	// 8e03978e-40d5 <nil>
	// 8e03978e-40d5 <nil>
	//  <nil>
	//  header Idempotency-Key is empty
	//  header Idempotency-Key has more than one line
}
