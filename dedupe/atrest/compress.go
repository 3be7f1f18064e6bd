package atrest

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/interlock-go/interlock/dedupe"
)

// A compressed answer, version 1:
//
//	mark      6 bytes   F8 "flate"
//	version   1 byte    01
//	method    1 byte    00: the answer follows as it is; 01: what follows here
//	size      uvarint   of the answer
//	checksum  4 bytes   CRC-32C of the answer, big endian
//	the answer as a DEFLATE stream (RFC 1951), to the end
//
// An answer that is not worth compressing is kept without any of that, unless it begins with the mark
// itself: that is what method 00 is for. A layout that this code would misread gets the next version;
// an answer of version 1 stays readable.
const (
	flateMark    = "\xf8flate"
	flateVersion = 1

	methodNone    = 0
	methodDeflate = 1

	checksumSize = 4
)

// CompressOption changes how [Compress] goes about its work.
type CompressOption func(*compressor)

// WithLimit sets how large an answer, in bytes, may come out of a compressed one: it bounds what a few
// bytes in the store can cost in memory. Larger answers are kept uncompressed. One that was compressed
// under a higher limit is refused, so that moving it refuses some during a rollout, and lowering it
// until the retention is over. From 1 byte to 1 GiB; the default is 16 MiB, and what adapters keep is
// at most 1 MiB unless they are told otherwise.
func WithLimit(size int) CompressOption { return func(c *compressor) { c.limit = size } }

const (
	defaultLimit = 16 << 20
	maxLimit     = 1 << 30
)

// compressor is what Compress returns. Apart from its pools it does not change after that.
type compressor struct {
	above, limit int
	writers      sync.Pool // of *deflater
	readers      sync.Pool // of *inflater
}

// Compress returns a codec that compresses answers of more than above bytes, with DEFLATE from the
// standard library at its fastest level. An answer that would not get smaller is kept as it is. So none
// grows, unless it begins with the codec's own mark, and then by 8 bytes; no adapter's does. What was
// kept before compression was turned on is read as it is. An above of math.MaxInt compresses nothing
// and reads what others compressed: deploy that first, and when turning compression off, last.
//
// Below 1 KiB there is little to gain. Where somebody can choose a part of an answer and see the size
// of what is kept, that size tells them about the rest, sealed or not; leave compression out there.
//
// Damage is refused with an error that matches [dedupe.ErrRecordUnreadable]. A checksum finds
// accidents, not attacks; against those, seal. The error of Compress names every bad value and its
// bound. The codec is safe for concurrent use.
func Compress(above int, options ...CompressOption) (dedupe.Codec, error) {
	c := &compressor{above: above, limit: defaultLimit}
	var found []error
	if above < 0 {
		found = append(found, fmt.Errorf("above is %d bytes; give 0 or more, such as 1024", above))
	}
	for _, option := range options {
		if option == nil {
			found = append(found, errOptionNil)
			continue
		}
		option(c)
	}
	if c.limit < 1 || c.limit > maxLimit {
		found = append(found, fmt.Errorf("WithLimit(%d) must be from 1 to %d bytes; the default is %d", c.limit, maxLimit, defaultLimit))
	}
	if len(found) > 0 {
		return nil, invalid("Compress", found)
	}
	return c, nil
}

// Encode compresses the answer if that makes it smaller. It never fails.
func (c *compressor) Encode(_ dedupe.Digest, _ uint64, answer []byte) ([]byte, error) {
	if len(answer) > c.above && len(answer) <= c.limit {
		if stored, ok := c.deflate(answer); ok {
			return stored, nil
		}
	}
	if !marked(answer, flateMark) {
		return present(answer), nil
	}
	stored := make([]byte, 0, len(flateMark)+2+len(answer))
	return append(append(append(stored, flateMark...), flateVersion, methodNone), answer...), nil
}

// Decode is the inverse of Encode. It trusts nothing: the bytes come from a store.
func (c *compressor) Decode(_ dedupe.Digest, stored []byte) ([]byte, error) {
	if !marked(stored, flateMark) {
		return present(stored), nil
	}
	start := len(flateMark) + 2
	if len(stored) < start {
		return nil, errCutShort
	}
	if version := stored[len(flateMark)]; version != flateVersion {
		return nil, unreadable("it is compressed in version %d, and this is version %d", version, flateVersion)
	}
	switch method := stored[len(flateMark)+1]; method {
	case methodNone:
		return stored[start:], nil
	case methodDeflate:
		return c.inflate(stored[start:])
	default:
		return nil, unreadable("it is compressed by method %d, which version %d does not have", method, flateVersion)
	}
}

var checksums = crc32.MakeTable(crc32.Castagnoli)

// deflater compresses one answer at a time. Its writer has about a megabyte of tables.
type deflater struct {
	writer *flate.Writer
	out    bounded
}

// bounded collects what is written up to a size.
type bounded struct {
	data []byte
	size int
}

var errNoGain = errors.New("atrest: the compressed answer is not smaller")

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.data)+len(p) > b.size {
		return 0, errNoGain
	}
	b.data = append(b.data, p...)
	return len(p), nil
}

// deflate returns the answer compressed, if that is smaller.
func (c *compressor) deflate(answer []byte) (stored []byte, smaller bool) {
	d, ok := c.writers.Get().(*deflater)
	if !ok {
		d = &deflater{}
		d.writer, _ = flate.NewWriter(&d.out, flate.BestSpeed) // fails for other levels only
	}
	defer c.writers.Put(d)
	d.out.size = len(answer) - 1
	d.out.data = append(d.out.data[:0], flateMark...)
	d.out.data = append(d.out.data, flateVersion, methodDeflate)
	d.out.data = binary.AppendUvarint(d.out.data, uint64(len(answer)))
	d.out.data = binary.BigEndian.AppendUint32(d.out.data, crc32.Checksum(answer, checksums))
	d.writer.Reset(&d.out)
	if _, err := d.writer.Write(answer); err != nil {
		return nil, false
	}
	if err := d.writer.Close(); err != nil {
		return nil, false
	}
	return bytes.Clone(d.out.data), true
}

// inflater decompresses one answer at a time.
type inflater struct {
	source bytes.Reader
	reader io.ReadCloser
}

// maxRatio is how many bytes a byte of a DEFLATE stream can become: 258 for every two bits.
const maxRatio = 1032

// inflate returns the answer in what stands after the method.
func (c *compressor) inflate(data []byte) ([]byte, error) {
	size, n := binary.Uvarint(data)
	if n <= 0 || len(data) < n+checksumSize {
		return nil, errCutShort
	}
	if size > uint64(c.limit) { //nolint:gosec // the limit is positive
		return nil, unreadable("it would be larger than the limit of %d bytes; see atrest.WithLimit", c.limit)
	}
	checksum := binary.BigEndian.Uint32(data[n:])
	data = data[n+checksumSize:]
	if size/maxRatio > uint64(len(data)) {
		return nil, errDamaged // before memory is set aside for it
	}

	d, ok := c.readers.Get().(*inflater)
	if !ok {
		d = &inflater{}
		d.reader = flate.NewReader(&d.source)
	}
	defer c.readers.Put(d)
	d.source.Reset(data)
	defer d.source.Reset(nil) // the pool must not keep the record

	if err := d.reader.(flate.Resetter).Reset(&d.source, nil); err != nil { //nolint:errcheck // flate says that it is one
		return nil, errDamaged
	}
	answer := make([]byte, size)
	if _, err := io.ReadFull(d.reader, answer); err != nil {
		return nil, errDamaged
	}
	var more [1]byte
	if n, err := d.reader.Read(more[:]); n != 0 || !errors.Is(err, io.EOF) || d.source.Len() != 0 {
		return nil, errDamaged
	}
	if crc32.Checksum(answer, checksums) != checksum {
		return nil, errDamaged
	}
	return answer, nil
}

var errDamaged = unreadable("its compressed bytes are damaged")
