package atrest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/atrest"
)

// golden is the answer in every file of testdata, kept for digest with fence.
var golden = bytes.Repeat(answer, 20)

// Answers outlive the version that kept them: whatever may change, these bytes stay readable.
func TestAnswersOfVersion1(t *testing.T) {
	t.Parallel()
	keys := []atrest.Key{key("2026-09"), key("2026-06")}
	sealing, compressing := seal(t, keys), compress(t, 100)
	for file, test := range map[string]struct {
		codec dedupe.Codec
		head  string // what is the same each time: a nonce is not, and DEFLATE may become better
	}{
		"sealed-v1": {sealing, "\xf8seal\x01\x072026-09\x00\x06\x5b\xfe\xda\x25\xe0\x00"},
		// Its size is 620, or EC 04; then comes its checksum.
		"compressed-v1":            {compressing, "\xf8flate\x01\x01\xec\x04\xf2\xc4\x9f\x2d"},
		"compressed-and-sealed-v1": {chain(t, compressing, sealing), "\xf8seal\x01\x072026-09\x00\x06\x5b\xfe\xda\x25\xe0\x00"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			stored := readGolden(t, file)
			got, err := test.codec.Decode(digest, stored)
			if err != nil || !bytes.Equal(got, golden) {
				t.Errorf("got %q, %v", got, err)
			}
			for _, kept := range [][]byte{stored, encode(t, test.codec, golden)} {
				if !bytes.HasPrefix(kept, []byte(test.head)) {
					t.Errorf("the layout has changed without a new version: %q", kept)
				}
			}
			if file != "compressed-v1" {
				mustRefuse(t, test.codec, dedupe.Digest{}, stored)
			}
		})
	}
}

func readGolden(t testing.TB, file string) []byte {
	t.Helper()
	stored, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return stored
}
