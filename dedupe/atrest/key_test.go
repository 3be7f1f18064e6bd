package atrest_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/atrest"
)

func TestBadArguments(t *testing.T) {
	t.Parallel()
	keys := func(keys ...atrest.Key) func() (dedupe.Codec, error) {
		return func() (dedupe.Codec, error) { return atrest.Seal(keys) }
	}
	with := func(options ...atrest.SealOption) func() (dedupe.Codec, error) {
		return func() (dedupe.Codec, error) { return atrest.Seal([]atrest.Key{key("a")}, options...) }
	}
	compressing := func(above int, options ...atrest.CompressOption) func() (dedupe.Codec, error) {
		return func() (dedupe.Codec, error) { return atrest.Compress(above, options...) }
	}
	chaining := func(codecs ...dedupe.Codec) func() (dedupe.Codec, error) {
		return func() (dedupe.Codec, error) { return atrest.Chain(codecs...) }
	}
	secret := key("a").Secret
	compressor, sealer := compress(t, 1), seal(t, []atrest.Key{key("a")})
	for name, test := range map[string]struct {
		make func() (dedupe.Codec, error)
		says []string // nil if it is good
	}{
		"no key":                {keys(), []string{"atrest.Seal", "no key", "give one"}},
		"no ID":                 {keys(atrest.Key{Secret: secret}), []string{"key 1", "0 bytes", "1 to 64"}},
		"ID of 64 bytes":        {keys(atrest.Key{ID: strings.Repeat("a", 64), Secret: secret}), nil},
		"ID of 65 bytes":        {keys(atrest.Key{ID: strings.Repeat("a", 65), Secret: secret}), []string{"key 1", "65 bytes", "1 to 64"}},
		"ID with a space":       {keys(atrest.Key{ID: "a b", Secret: secret}), []string{`key 1 ("a b")`, "spaces", "leave them out"}},
		"ID with a control":     {keys(atrest.Key{ID: "a\n", Secret: secret}), []string{`key 1 ("a\n")`, "printable"}},
		"ID with DEL":           {keys(atrest.Key{ID: "a\x7f", Secret: secret}), []string{"printable"}},
		"no secret":             {keys(key("a"), atrest.Key{ID: "b"}), []string{`key 2 ("b")`, "0 bytes", "give 32"}},
		"secret of 16 bytes":    {keys(atrest.Key{ID: "b", Secret: secret[:16]}), []string{`key 1 ("b")`, "16 bytes", "give 32"}},
		"secret of 33 bytes":    {keys(atrest.Key{ID: "b", Secret: append(secret, 1)}), []string{"33 bytes", "give 32"}},
		"secret of zeros":       {keys(atrest.Key{ID: "b", Secret: make([]byte, 32)}), []string{`key 1 ("b")`, "one byte 32 times", "random"}},
		"secret of one byte":    {keys(atrest.Key{ID: "b", Secret: bytes.Repeat([]byte{200}, 32)}), []string{"one byte 32 times"}},
		"secret in hexadecimal": {keys(atrest.Key{ID: "b", Secret: []byte(hex.EncodeToString(secret[:16]))}), []string{`key 1 ("b")`, "text", "decoded"}},
		"one ID twice":          {keys(key("a"), key("c"), atrest.Key{ID: "a", Secret: key("b").Secret}), []string{`key 3 ("a")`, "key 1 too", "its own"}},
		"one secret twice":      {keys(key("c"), key("a"), atrest.Key{ID: "b", Secret: secret}), []string{`key 3 ("b")`, `key 2 ("a") too`, "new one"}},
		"several":               {keys(atrest.Key{}, atrest.Key{ID: "b"}), []string{"atrest.Seal: key 1", "atrest.Seal: key 2"}},
		"good keys":             {keys(key("a"), key("b"), key("c")), nil},

		"nil option of Seal":   {with(nil), []string{"atrest.Seal", "option is nil"}},
		"no end":               {with(atrest.WithUnsealed(time.Time{})), []string{"WithUnsealed", "zero", "retention"}},
		"end too far":          {with(atrest.WithUnsealed(time.Now().Add(101 * 24 * time.Hour))), []string{"WithUnsealed", "100 days"}},
		"end in 99 days":       {with(atrest.WithUnsealed(time.Now().Add(99 * 24 * time.Hour))), nil},
		"end is long past":     {with(atrest.WithUnsealed(time.Unix(1, 0))), nil},
		"bad key and bad time": {func() (dedupe.Codec, error) { return atrest.Seal(nil, atrest.WithUnsealed(time.Time{})) }, []string{"no key", "zero"}},

		"negative size":          {compressing(-1), []string{"atrest.Compress", "-1", "0 or more"}},
		"size 0":                 {compressing(0), nil},
		"nil option of Compress": {compressing(0, nil), []string{"atrest.Compress", "option is nil"}},
		"limit 0":                {compressing(0, atrest.WithLimit(0)), []string{"WithLimit(0)", "1 to 1073741824", "16777216"}},
		"limit over 1 GiB":       {compressing(0, atrest.WithLimit(1<<30+1)), []string{"WithLimit(1073741825)"}},
		"limits":                 {compressing(0, atrest.WithLimit(1), atrest.WithLimit(1<<30)), nil},

		"empty chain":    {chaining(), []string{"atrest.Chain", "no codec"}},
		"nil in a chain": {chaining(compressor, nil), []string{"atrest.Chain", "codec 2", "nil"}},
		"wrong order":    {chaining(sealer, compressor), []string{"codec 2", "codec 1", "Compress before Seal"}},
		"right order":    {chaining(compressor, sealer), nil},
		"sealed twice":   {chaining(sealer, sealer), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			codec, err := test.make()
			if test.says == nil {
				if err != nil || codec == nil {
					t.Errorf("got %v, %v", codec, err)
				}
				return
			}
			if err == nil || codec != nil {
				t.Fatalf("got %v, %v", codec, err)
			}
			for _, text := range test.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
			for _, text := range []string{string(secret), string(secret[:16]), hex.EncodeToString(secret[:16])} {
				if strings.Contains(err.Error(), text) {
					t.Errorf("%q contains a secret", err)
				}
			}
		})
	}
}

// A caller may clear its secrets once the codec is made.
func TestSecretIsCopied(t *testing.T) {
	t.Parallel()
	k := key("a")
	codec := seal(t, []atrest.Key{k})
	clear(k.Secret)
	if got, err := codec.Decode(digest, encode(t, seal(t, []atrest.Key{key("a")}), answer)); err != nil || !bytes.Equal(got, answer) {
		t.Errorf("got %q, %v", got, err)
	}
}

// Keys and codecs get into logs.
func TestSecretIsNotPrinted(t *testing.T) {
	t.Parallel()
	k := key("a")
	codec := seal(t, []atrest.Key{k})
	encoded, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, k), fmt.Sprintf(verb, &k), fmt.Sprintf(verb, []atrest.Key{k}),
			fmt.Sprintf(verb, codec), fmt.Sprintf(verb, struct{ Codec dedupe.Codec }{codec}))
	}
	encodedSecret, err := json.Marshal(k.Secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		for _, secret := range []string{
			string(k.Secret), strings.Trim(fmt.Sprintf("%d", k.Secret[:4]), "[]"), hex.EncodeToString(k.Secret[:4]),
			fmt.Sprintf("%#x, %#x", k.Secret[0], k.Secret[1]), strings.Trim(string(encodedSecret), `"`),
		} {
			if strings.Contains(text, secret) {
				t.Errorf("%s contains the secret", text)
			}
		}
	}
	if got := fmt.Sprintf("%+v", k); got != `atrest.Key("a")` {
		t.Errorf("a key is printed as %s", got)
	}
}
