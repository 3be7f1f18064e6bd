package keyfuncs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyfuncs"
)

func TestBearer(t *testing.T) {
	long := strings.Repeat("t", 8192)
	const (
		empty     = "header Authorization is empty"
		lines     = "header Authorization has more than one line"
		scheme    = "header Authorization is not of the scheme Bearer"
		missing   = "header Authorization has no token"
		character = "header Authorization has a token with a space, a comma or a character that is not printable ASCII"
	)
	for _, test := range []struct {
		name    string
		lines   []string
		token   string
		problem string
	}{
		{name: "no line"},
		{name: "token", lines: []string{"Bearer s3cret"}, token: "s3cret"},
		{name: "lower case scheme", lines: []string{"bearer s3cret"}, token: "s3cret"},
		{name: "upper case scheme", lines: []string{"BEARER s3cret"}, token: "s3cret"},
		{name: "case of the token", lines: []string{"Bearer S3CRET"}, token: "S3CRET"},
		{name: "white space", lines: []string{" \tBearer   s3cret\t "}, token: "s3cret"},
		{name: "beyond RFC 6750", lines: []string{`Bearer 1|s3:"cret"`}, token: `1|s3:"cret"`},
		{name: "long", lines: []string{"Bearer " + long}, token: long},
		{name: "two lines", lines: []string{"Bearer s3cret", "Bearer s3cret"}, problem: lines},
		{name: "joined lines", lines: []string{"Bearer s3cret, Bearer s3cret"}, problem: character},
		{name: "joined tokens", lines: []string{"Bearer s3,cret"}, problem: character},
		{name: "empty", lines: []string{""}, problem: empty},
		{name: "white space only", lines: []string{" \t"}, problem: empty},
		{name: "scheme only", lines: []string{"Bearer"}, problem: missing},
		{name: "scheme and space", lines: []string{"Bearer  "}, problem: missing},
		{name: "tab for the space", lines: []string{"Bearer\ts3cret"}, problem: scheme},
		{name: "tab behind the space", lines: []string{"Bearer \ts3cret"}, problem: character},
		{name: "other scheme", lines: []string{"Basic czM6czM="}, problem: scheme},
		{name: "no scheme", lines: []string{"s3cret"}, problem: scheme},
		{name: "scheme run together", lines: []string{"Bearers3cret"}, problem: scheme},
		{name: "letter that folds to one of ASCII", lines: []string{"Bearer\u212a s3cret"}, problem: scheme},
		{name: "two tokens", lines: []string{"Bearer s3 cret"}, problem: character},
		{name: "control", lines: []string{"Bearer s3\x00cret"}, problem: character},
		{name: "delete", lines: []string{"Bearer s3\x7fcret"}, problem: character},
		{name: "UTF-8", lines: []string{"Bearer s3crét"}, problem: character},
	} {
		t.Run(test.name, func(t *testing.T) {
			token, err := keyfuncs.Bearer()(withHeader("Authorization", test.lines...))
			checkKey(t, token, err, test.token, test.problem)
		})
	}
}

func ExampleBearer() {
	caller := keyfuncs.Bearer()
	fmt.Println(caller(withHeader("Authorization", "Bearer mF_9.B5f-4.1JqM")))
	fmt.Println(caller(withHeader("Authorization", "Basic QWxhZGRpbg==")))
	// Output:
	// mF_9.B5f-4.1JqM <nil>
	//  header Authorization is not of the scheme Bearer
}
