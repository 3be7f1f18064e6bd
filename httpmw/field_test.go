package httpmw_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
)

// fieldOf is what key functions get of a field of a body.
func fieldOf(body []byte, path string) (string, error) {
	return httpmw.NewRequest(httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))).Field(path)
}

func TestField(t *testing.T) {
	const (
		notJSON   = "cannot be found, because the body is not JSON"
		notScalar = "is neither a string nor an integer"
		fraction  = "is not an integer"
		noObject  = "is looked for in something that is not an object"
		otherCase = "is written in another case"
		twice     = "is there more than once"
	)
	long := strings.Repeat("9", 400)
	deep := strings.Repeat(`{"a":`, 20_000)
	for name, test := range map[string]struct {
		path, body string
		text       string
		problem    string
	}{
		"string":                     {"to", `{"to":"7"}`, "7", ""},
		"integer":                    {"to", `{"to":7}`, "7", ""},
		"zero":                       {"to", `{"to":0}`, "0", ""},
		"negative":                   {"to", `{"to":-7}`, "-7", ""},
		"big integer":                {"to", `{"to":` + long + `}`, long, ""},
		"beyond float64":             {"to", `{"to":9007199254740993}`, "9007199254740993", ""},
		"escapes":                    {"to", `{"\u0074o":"\u0037\n\ud83d\ude00"}`, "7\n😀", ""},
		"white space":                {"to", " \r\n\t{ \"to\" : 7 } \n", "7", ""},
		"white space in the value":   {"to", `{"to":" 7 "}`, " 7 ", ""},
		"nested":                     {"order.customer.id", `{"a":[{}],"order":{"id":1,"customer":{"id":"c","x":{}}},"b":1}`, "c", ""},
		"name with an odd character": {"order-id", `{"order-id":7}`, "7", ""},
		"null":                       {"to", `{"to":null}`, "", ""},
		"null further out":           {"order.id", `{"order":null}`, "", ""},
		"null body":                  {"to", `null`, "", ""},
		"empty text":                 {"to", `{"to":""}`, "", ""},
		"missing":                    {"to", `{"from":7}`, "", ""},
		"missing further in":         {"order.id", `{"order":{"x":{"id":7}},"id":7}`, "", ""},
		"dotted name":                {"order.id", `{"order.id":7}`, "", ""},
		"empty object":               {"to", `{}`, "", ""},
		"empty body":                 {"to", ``, "", ""},
		"blank body":                 {"to", " \n", "", ""},
		"as a value":                 {"to", `{"x":"to","y":["to",7]}`, "", ""},
		"many others":                {"to", `{` + strings.Repeat(`"x":{"to":[1,"}"]},`, 1000) + `"to":7}`, "7", ""},

		"fraction":                     {"to", `{"to":7.5}`, "", fraction},
		"fraction that is none":        {"to", `{"to":7.0}`, "", fraction},
		"exponent":                     {"to", `{"to":7e2}`, "", fraction},
		"capital exponent":             {"to", `{"to":7E2}`, "", fraction},
		"minus zero":                   {"to", `{"to":-0}`, "", fraction},
		"true":                         {"to", `{"to":true}`, "", notScalar},
		"false":                        {"to", `{"to":false}`, "", notScalar},
		"list":                         {"to", `{"to":[7]}`, "", notScalar},
		"object":                       {"to", `{"to":{"id":7}}`, "", notScalar},
		"text further out":             {"order.id", `{"order":"id"}`, "", noObject},
		"list further out":             {"order.id", `{"order":[{"id":7}]}`, "", noObject},
		"list as body":                 {"to", `[{"to":7}]`, "", noObject},
		"number as body":               {"to", `7`, "", noObject},
		"duplicate":                    {"to", `{"to":7,"to":8}`, "", twice},
		"equal duplicate":              {"to", `{"to":7,"x":0,"to":7}`, "", twice},
		"escaped duplicate":            {"to", `{"to":7,"\u0074\u006f":8}`, "", twice},
		"duplicate further out":        {"order.id", `{"order":{"id":7},"order":{}}`, "", twice},
		"null, then again":             {"to", `{"to":null,"to":7}`, "", twice},
		"other case":                   {"to", `{"TO":7}`, "", otherCase},
		"other case after":             {"to", `{"to":7,"To":8}`, "", otherCase},
		"other case before":            {"to", `{"tO":8,"to":7}`, "", otherCase},
		"other case further out":       {"order.id", `{"order":{"id":7},"Order":{"id":8}}`, "", otherCase},
		"letter that folds to ASCII":   {"task", `{"task":7,"tas` + "\u212a" + `":8}`, "", otherCase},
		"letter that folds to ASCII 2": {"is", `{"i` + "\u017f" + `":8}`, "", otherCase},
		"form":                         {"to", `to=7`, "", notJSON},
		"half":                         {"to", `{"to":7`, "", notJSON},
		"half a name":                  {"to", `{"to`, "", notJSON},
		"half a value":                 {"to", `{"x":`, "", notJSON},
		"trailing comma":               {"to", `{"to":7,}`, "", notJSON},
		"trailing bracket":             {"to", `{"to":7}}`, "", notJSON},
		"trailing text":                {"to", `{"to":7} x`, "", notJSON},
		"second value":                 {"to", `{"to":7}{"to":8}`, "", notJSON},
		"name that is none":            {"to", `{7:8}`, "", notJSON},
		"leading zero":                 {"to", `{"to":07}`, "", notJSON},
		"byte order mark":              {"to", "\ufeff" + `{"to":7}`, "", notJSON},
		"broken beside":                {"to", `{"x":tru,"to":7}`, "", notJSON},
		"broken behind":                {"to", `{"to":7,"x":nul}`, "", notJSON},
		"deep beside":                  {"to", `{"to":7,"x":` + deep, "", notJSON},
		"deep":                         {"a.a.a", deep, "", notScalar},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := fieldOf([]byte(test.body), test.path)
			if test.problem == "" {
				if text != test.text || err != nil {
					t.Errorf("got %q, %v; want %q", text, err, test.text)
				}
				return
			}
			want := &dedupe.KeyError{Source: "field " + test.path, Problem: test.problem}
			var got *dedupe.KeyError
			if text != "" || !errors.As(err, &got) || *got != *want {
				t.Errorf("got %q, %v; want %v", text, err, want)
			}
		})
	}
}

// Whatever key a guard reads, the handler reads the same, or one of them refuses.
func FuzzField(f *testing.F) {
	for _, body := range []string{
		``, ` `, `null`, `7`, `[]`, `{}`, `{"to":7}`, `{"to":"7"}`, `{"to":null}`, `{"to":7.0}`, `{"to":[7]}`, `{"to":true}`,
		`{"to":7,"to":8}`, `{"to":7,"TO":8}`, `{"To":8,"to":7}`, `{"to":7}{"to":8}`, `{"to":7} x`, `{"to":7,}`, `{"to" 7}`, `{"to":07}`,
		`{"x":{"to":8},"to":7}`, `{"\u0074o":8}`, "{\"t\xff\":8,\"to\":\"\xff\"}", `{"to":"\ud800"}`, `{"to":-0}`, `{"to":9007199254740993}`,
		"\ufeff{}", `{"x":[1,2,{"to":3}],"to":"` + "\u212a" + `"}`, `{"to":{"to":7}}`, `{"x":1 "to":7}`, `{,"to":7}`, `{"to":7]`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		key, err := fieldOf(body, "to")
		if err != nil {
			var problem *dedupe.KeyError
			if key != "" || !errors.As(err, &problem) {
				t.Fatalf("got %q, %v", key, err)
			}
			return
		}

		var anything struct {
			To any `json:"to"`
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		switch err := decoder.Decode(&anything); {
		case err != nil:
			if key != "" {
				t.Fatalf("the guard reads %q in what the handler cannot read: %v", key, err)
			}
			return
		case anything.To == nil:
			anything.To = ""
		}
		if got := fmt.Sprint(anything.To); got != key {
			t.Errorf("the guard reads %q, the handler %q", key, got)
		}

		var text struct {
			To string `json:"to"`
		}
		if json.Unmarshal(body, &text) == nil && text.To != key {
			t.Errorf("the guard reads %q, the handler the string %q", key, text.To)
		}
		var number struct {
			To *int64 `json:"to"`
		}
		if json.Unmarshal(body, &number) == nil && number.To != nil && strconv.FormatInt(*number.To, 10) != key {
			t.Errorf("the guard reads %q, the handler the number %d", key, *number.To)
		}
	})
}
