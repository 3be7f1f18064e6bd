package grpcmw_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/grpcmw"
)

func TestField(t *testing.T) {
	t.Parallel()
	const (
		zero      = "is 0, which cannot be told from a field that is not set"
		repeated  = "is a list or a map"
		other     = "is neither a string nor an integer"
		ambiguous = "is the name of one field and the JSON name of another"
		shallow   = "is looked for in something that is not a message"
	)
	for _, test := range []struct {
		text, path, want, problem string
	}{
		{text: `text: "a"`, path: "text", want: "a"},
		{text: `text: "0"`, path: "text", want: "0"},
		{text: `text: " a.b "`, path: "text", want: " a.b "},
		{path: "text"},
		{path: "nothing"},
		{path: ""},
		{path: "."},
		{path: "inner."},
		{path: "nothing.at.all"},
		{text: `raw: "\x00\xff"`, path: "raw", want: "AP8="},
		{path: "raw"},

		{text: `int32: -2147483648`, path: "int32", want: "-2147483648"},
		{text: `sint32: -7`, path: "sint32", want: "-7"},
		{text: `sfixed32: 2147483647`, path: "sfixed32", want: "2147483647"},
		{text: `int64: 9223372036854775807`, path: "int64", want: "9223372036854775807"},
		{text: `sint64: -9223372036854775808`, path: "sint64", want: "-9223372036854775808"},
		{text: `sfixed64: 7`, path: "sfixed64", want: "7"},
		{text: `uint32: 4294967295`, path: "uint32", want: "4294967295"},
		{text: `fixed32: 4294967295`, path: "fixed32", want: "4294967295"},
		{text: `uint64: 18446744073709551615`, path: "uint64", want: "18446744073709551615"},
		{text: `fixed64: 18446744073709551615`, path: "fixed64", want: "18446744073709551615"},
		{path: "int64", problem: zero},
		{path: "fixed32", problem: zero},
		{text: `int64: 0`, path: "int64", problem: zero},

		{text: `currency: EUR`, path: "currency", want: "1"},
		{text: `currency: DEBT`, path: "currency", want: "-1"},
		{text: `currency: 99`, path: "currency", want: "99"},
		{path: "currency", problem: zero},

		{path: "opt_int64"},
		{text: `opt_int64: 0`, path: "opt_int64", want: "0"},
		{text: `opt_int64: 0`, path: "optInt64", want: "0"},
		{path: "opt_text"},
		{text: `opt_text: ""`, path: "opt_text"},
		{path: "opt_currency"},
		{text: `opt_currency: 0`, path: "opt_currency", want: "0"},
		{path: "opt_flag"},
		{text: `opt_flag: false`, path: "opt_flag", problem: other},

		{path: "one_text"},
		{text: `one_text: "a"`, path: "one_text", want: "a"},
		{text: `one_text: "a"`, path: "one_uint32"},
		{text: `one_uint32: 0`, path: "one_uint32", want: "0"},
		{text: `one_uint32: 0`, path: "one"},

		{path: "w_text"},
		{text: `w_text {}`, path: "w_text"},
		{text: `w_text { value: "a" }`, path: "wText", want: "a"},
		{text: `w_text { value: "a" }`, path: "w_text.value", want: "a"},
		{text: `w_raw { value: "a" }`, path: "w_raw", want: "YQ=="},
		{path: "w_int32"},
		{text: `w_int32 {}`, path: "w_int32", want: "0"},
		{text: `w_int32 { value: -7 }`, path: "w_int32", want: "-7"},
		{text: `w_int64 { value: 7 }`, path: "w_int64", want: "7"},
		{text: `w_uint32 { value: 7 }`, path: "w_uint32", want: "7"},
		{text: `w_uint64 { value: 7 }`, path: "w_uint64", want: "7"},
		{text: `w_flag { value: true }`, path: "w_flag", problem: other},
		{text: `w_float { value: 7 }`, path: "w_float", problem: other},
		{text: `w_double { value: 7 }`, path: "w_double", problem: other},
		{path: "w_double"},

		{text: `flag: true`, path: "flag", problem: other},
		{path: "flag", problem: other},
		{text: `float: 7`, path: "float", problem: other},
		{text: `double: 7`, path: "double", problem: other},
		{text: `list: "a"`, path: "list", problem: repeated},
		{path: "list", problem: repeated},
		{text: `tags { key: "a" value: "b" }`, path: "tags", problem: repeated},
		{text: `time { seconds: 7 }`, path: "time", problem: other},
		{path: "time"},
		{text: `time { seconds: 7 }`, path: "time.seconds", want: "7"},
		{text: `inner {}`, path: "inner", problem: other},

		{text: `inner { inner { text: "a" } }`, path: "inner.inner.text", want: "a"},
		{text: `inner { text: "a" }`, path: "inner.inner.text"},
		{path: "inner.inner.text"},
		{text: `inner {}`, path: "inner.int64", problem: zero},
		{path: "inner.int64"},
		{text: `inners { text: "a" }`, path: "inners.text", problem: shallow},
		{text: `tags { key: "a" value: "b" }`, path: "tags.a", problem: shallow},
		{text: `text: "a"`, path: "text.a", problem: shallow},

		{text: `account_id: "a"`, path: "account_id", want: "a"},
		{text: `account_id: "a"`, path: "accountId", want: "a"},
		{text: `account_id: "a"`, path: "AccountId"},
		{text: `first: "a"`, path: "first", want: "a"},
		{text: `first: "a"`, path: "second", problem: ambiguous},
		{text: `second: "a"`, path: "third", want: "a"},
	} {
		t.Run(test.path+" of "+test.text, func(t *testing.T) {
			t.Parallel()
			r := grpcmw.NewRequest(t.Context(), withdraw, newMessage("Fields", test.text))
			got, err := r.Field(test.path)
			checkText(t, got, err, test.want, test.problem, test.path)
		})
	}
}

// Param is for fields of the message itself, whatever their names.
func TestParam(t *testing.T) {
	t.Parallel()
	r := grpcmw.NewRequest(t.Context(), withdraw, newMessage("Fields", `text: "a" inner { text: "b" }`))
	got, err := r.Param("text")
	checkText(t, got, err, "a", "", "")
	got, err = r.Param("inner.text")
	checkText(t, got, err, "", "", "")
	_, err = r.Param("list")
	checkText(t, "", err, "", "is a list or a map", "list")
}

func TestFieldOfGeneratedMessage(t *testing.T) {
	t.Parallel()
	got, err := grpcmw.NewRequest(t.Context(), withdraw, wrapperspb.String("a")).Field("value")
	checkText(t, got, err, "a", "", "")
	var none *wrapperspb.StringValue
	got, err = grpcmw.NewRequest(t.Context(), withdraw, none).Field("value")
	checkText(t, got, err, "", "", "")
}

func TestFieldOfNoMessage(t *testing.T) {
	t.Parallel()
	for _, message := range []any{nil, struct{ ID string }{"a"}, "a"} {
		r := grpcmw.NewRequest(t.Context(), withdraw, message)
		const problem = "cannot be found, because the message is not of protobuf"
		got, err := r.Field("ID")
		checkText(t, got, err, "", problem, "ID")
		got, err = r.Param("ID")
		checkText(t, got, err, "", problem, "ID")
		if _, err := r.Payload(); !errors.Is(err, dedupe.ErrKeyInvalid) {
			t.Errorf("payload: error %v", err)
		}
	}
}

func checkText(t testing.TB, got string, err error, want, problem, path string) {
	t.Helper()
	if problem != "" {
		var key *dedupe.KeyError
		if !errors.As(err, &key) || key.Source != "field "+path || key.Problem != problem || got != "" {
			t.Errorf("got %q, %v; want the problem %q", got, err, problem)
		}
		return
	}
	if got != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
