package atrest_test

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/quick"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/atrest"
)

const mark = "\xf8flate"

// compressed lays a record out by hand, as the comment in compress.go says.
func compressed(size uint64, checksum uint32, stream []byte) []byte {
	stored := binary.AppendUvarint([]byte(mark+"\x01\x01"), size)
	return append(binary.BigEndian.AppendUint32(stored, checksum), stream...)
}

func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

func deflated(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// random returns bytes that do not compress, the same for the same size.
func random(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(size), byte(size >> 8)}).Read(data)
	return data
}

func TestCompressRoundTrip(t *testing.T) {
	t.Parallel()
	codec := compress(t, 100, atrest.WithLimit(100_000))
	roundTrip := func(unit []byte, times uint16) bool {
		answer := bytes.Repeat(unit, int(times)%1000)
		stored := encode(t, codec, answer)
		if len(stored) > len(answer) && !bytes.HasPrefix([]byte(mark), answer[:min(len(answer), len(mark))]) {
			t.Logf("%d bytes grew to %d", len(answer), len(stored))
			return false
		}
		got, err := codec.Decode(digest, stored)
		return err == nil && got != nil && bytes.Equal(got, answer)
	}
	if err := quick.Check(roundTrip, &quick.Config{MaxCount: 300}); err != nil {
		t.Error(err)
	}
}

func TestCompressWhenWorthIt(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat(answer, 1000)
	marked := append([]byte(mark), text...)
	for name, test := range map[string]struct {
		above  int
		limit  int
		answer []byte
		shape  string // how it is kept
	}{
		"large text":                     {100, 1 << 20, text, "compressed"},
		"one byte above":                 {len(text) - 1, 1 << 20, text, "compressed"},
		"as large as above":              {len(text), 1 << 20, text, "same"},
		"as large as the limit":          {0, len(text), text, "compressed"},
		"larger than the limit":          {0, len(text) - 1, text, "same"},
		"reading only":                   {math.MaxInt, 1 << 20, text, "same"},
		"hardly smaller":                 {0, 1 << 20, append(random(1000), make([]byte, 500)...), "compressed"},
		"random":                         {0, 1 << 20, random(10_000), "same"},
		"tiny":                           {0, 1 << 20, []byte("aaaaaaaaaa"), "same"},
		"one byte":                       {0, 1 << 20, []byte("a"), "same"},
		"empty":                          {0, 1 << 20, []byte{}, "same"},
		"nil":                            {0, 1 << 20, nil, "same"},
		"begins with the mark":           {0, 1 << 20, marked, "compressed"},
		"mark, small":                    {1 << 20, 1 << 20, marked, "escaped"},
		"mark, larger than the limit":    {0, 10, marked, "escaped"},
		"mark, random":                   {0, 1 << 20, append([]byte(mark), random(100)...), "escaped"},
		"the mark alone":                 {0, 1 << 20, []byte(mark), "escaped"},
		"breaks off within the mark":     {0, 1 << 20, []byte(mark[:1]), "escaped"},
		"almost the mark":                {0, 1 << 20, []byte(mark[:5] + "E"), "same"},
		"looks compressed, and would be": {math.MaxInt, 1 << 20, compressed(5, checksum([]byte("other")), deflated(t, []byte("other"))), "escaped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			codec := compress(t, test.above, atrest.WithLimit(test.limit))
			stored := encode(t, codec, test.answer)
			shape := "other"
			switch {
			case bytes.Equal(stored, test.answer):
				shape = "same"
			case string(stored) == mark+"\x01\x00"+string(test.answer):
				shape = "escaped"
			case bytes.HasPrefix(stored, []byte(mark+"\x01\x01")) && len(stored) < len(test.answer):
				shape = "compressed"
			}
			if shape != test.shape {
				t.Errorf("%.40q is kept as %.40q: %s instead of %s", test.answer, stored, shape, test.shape)
			}
			if got, err := codec.Decode(digest, stored); err != nil || got == nil || !bytes.Equal(got, test.answer) {
				t.Errorf("%.40q is read as %.40q, %v", test.answer, got, err)
			}
		})
	}
}

// What is kept stays what it is when the next answer is compressed.
func TestCompressedAnswersAreApart(t *testing.T) {
	t.Parallel()
	codec := compress(t, 0)
	first := encode(t, codec, bytes.Repeat(answer, 10))
	kept := bytes.Clone(first)
	for range 10 {
		encode(t, codec, bytes.Repeat([]byte("another"), 50))
	}
	if !bytes.Equal(first, kept) {
		t.Errorf("%q became %q", kept, first)
	}
}

// What another encoder writes by the layout is read: what compresses better, or what nobody would
// compress.
func TestCompressReadsTheLayout(t *testing.T) {
	t.Parallel()
	codec := compress(t, math.MaxInt)
	for _, want := range [][]byte{{}, []byte("a"), answer, bytes.Repeat(answer, 10_000), random(1000), make([]byte, 1<<20)} {
		got, err := codec.Decode(digest, compressed(uint64(len(want)), checksum(want), deflated(t, want)))
		if err != nil || got == nil || !bytes.Equal(got, want) {
			t.Errorf("%.40q is read as %.40q, %v", want, got, err)
		}
	}
}

func TestCompressRefuses(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat(answer, 100)
	size, sum, stream := uint64(len(text)), checksum(text), deflated(t, text)
	codec := compress(t, 0, atrest.WithLimit(len(text)))
	if got, err := codec.Decode(digest, compressed(size, sum, stream)); err != nil || !bytes.Equal(got, text) {
		t.Fatalf("got %q, %v", got, err)
	}
	larger := append(bytes.Clone(text), 0)
	for name, test := range map[string]struct {
		stored []byte
		says   string
	}{
		"version 0":              {[]byte(mark + "\x00\x01"), "version 0"},
		"newer version":          {[]byte(mark + "\x02\x01"), "version 2"},
		"other method":           {[]byte(mark + "\x01\x02"), "method 2"},
		"no size":                {[]byte(mark + "\x01\x01"), "cut short"},
		"size of eleven bytes":   {append([]byte(mark+"\x01\x01"), bytes.Repeat([]byte{0xff}, 11)...), "cut short"},
		"no checksum":            {[]byte(mark + "\x01\x01\x05\x00\x00\x00"), "cut short"},
		"no stream":              {compressed(size, sum, nil), "damaged"},
		"no stream, empty":       {compressed(0, 0, nil), "damaged"},
		"over the limit":         {compressed(size+1, checksum(larger), deflated(t, larger)), "limit of 3100 bytes"},
		"size of 2⁶³":            {compressed(1<<63, sum, stream), "limit"},
		"size of 2⁶⁴-1":          {compressed(math.MaxUint64, sum, stream), "limit"},
		"says less than it is":   {compressed(size-1, checksum(text[:size-1]), stream), "damaged"},
		"says more than it is":   {compressed(size, checksum(text[1:]), deflated(t, text[1:])), "damaged"},
		"checksum of another":    {compressed(size, sum^1, stream), "damaged"},
		"something after it":     {compressed(size, sum, append(slices.Clone(stream), 0)), "damaged"},
		"no DEFLATE":             {compressed(size, sum, bytes.Repeat([]byte{0xff}, 100)), "damaged"},
		"same size, other bytes": {compressed(size, sum, deflated(t, bytes.ToUpper(text))), "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := mustRefuse(t, codec, digest, test.stored); !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q does not say %q", err, test.says)
			}
		})
	}
	stored := compressed(size, sum, stream)
	for size := 1; size < len(stored); size++ {
		mustRefuse(t, codec, digest, stored[:size])
	}
	// After all that, the readers in the pool are as good as new.
	if got, err := codec.Decode(digest, stored); err != nil || !bytes.Equal(got, text) {
		t.Errorf("got %q, %v", got, err)
	}
}

// Memory follows what is stored and the limit, not what the record says.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 64<<20)
	bomb := deflated(t, zeros)
	codec := compress(t, 0)
	for name, stored := range map[string][]byte{
		"a bomb":                compressed(64<<20, checksum(zeros), bomb),
		"a bomb that lies":      compressed(1, 0, bomb),
		"a promise":             compressed(16<<20, 0, bomb[:100]),
		"a promise of nothing":  compressed(16<<20, 0, nil),
		"an exabyte of promise": compressed(1<<60, 0, bomb),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		mustRefuse(t, codec, digest, stored)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%s: %d bytes are allocated", name, got)
		}
	}
}

// Both decoders and encoders are shared by all requests.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	codec := chain(t, compress(t, 100), seal(t, []atrest.Key{key("a"), key("b")}))
	done := make(chan error)
	const workers = 8
	for worker := range workers {
		go func() {
			done <- func() error {
				mine := dedupe.Digest{byte(worker)}
				for i := range 100 {
					answer := append(bytes.Repeat([]byte{byte(worker)}, i*17), random(i)...)
					stored, err := codec.Encode(mine, uint64(i), answer)
					if err != nil {
						return err
					}
					got, err := codec.Decode(mine, stored)
					if err != nil {
						return err
					}
					if !bytes.Equal(got, answer) {
						t.Errorf("worker %d got another answer", worker)
					}
					if _, err := codec.Decode(mine, stored[:len(stored)-1]); err == nil {
						t.Error("a truncated answer is read")
					}
				}
				return nil
			}()
		}()
	}
	for range workers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
