package keyfuncs

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
)

// Multipart is the fingerprint of forms with files, and whatever else is multipart. Clients draw a new
// boundary for each attempt, so that two attempts at the same form differ in every byte that
// counts by default, and the second is refused as a mismatch. Multipart covers the parts instead, in
// their order: of each all header lines, which have its name and the file's, and its bytes as they
// were sent, not decoded. It covers the content type without the boundary. A boundary inside a
// part, of a multipart in a multipart, does count, and what is outside all parts does not.
//
// Any other payload, one that mime/multipart cannot read to its end, and one of more than 1,000 parts,
// which net/http does not parse either, is compared byte by byte together with its content type, as by
// default. So a guard may have Multipart over routes and frameworks that also take other payloads.
// It fails only as [dedupe.Request.Payload] does, that is, for a form over the adapter's limit,
// 1 MiB unless configured. For larger files let clients send a digest: see [Headers].
//
// The cost is a pass over the body. Parts are hashed where they are, and not copied.
func Multipart(r dedupe.Request) ([]byte, error) {
	payload, err := r.Payload()
	if err != nil {
		return nil, err
	}
	if digest, ok := sumParts(payload); ok {
		return digest, nil
	}
	exact := sha256.New()
	exact.Write(appendParts(nil, []string{"exact", payload.ContentType}))
	exact.Write(payload.Body)
	return exact.Sum(nil), nil
}

// maxParts is how many parts ReadForm of mime/multipart takes.
const maxParts = 1_000

// sumParts returns the digest of a multipart payload, and false if it is none or cannot be read to its
// end.
func sumParts(payload dedupe.Payload) (digest []byte, ok bool) {
	mediaType, parameters, err := mime.ParseMediaType(payload.ContentType)
	boundary := parameters["boundary"]
	if err != nil || !strings.HasPrefix(mediaType, "multipart/") || boundary == "" {
		return nil, false
	}
	delete(parameters, "boundary")
	mediaType = mime.FormatMediaType(mediaType, parameters)
	if mediaType == "" { // there is no way to write it
		return nil, false
	}

	parts := sha256.New()
	parts.Write(appendParts(nil, []string{"parts", mediaType}))
	reader := multipart.NewReader(bytes.NewReader(payload.Body), boundary)
	content, buffer := sha256.New(), make([]byte, 4<<10)
	for count := 0; ; count++ {
		part, err := reader.NextRawPart()
		if err == io.EOF { // as it is: a wrapped one means that the body was cut short
			return parts.Sum(nil), true
		}
		if err != nil || count == maxParts || !addPart(parts, part, content, buffer) {
			return nil, false
		}
	}
}

// addPart adds the header of a part and the digest of its bytes to parts. It reports whether it could
// read the part to its end.
func addPart(parts hash.Hash, part *multipart.Part, content hash.Hash, buffer []byte) bool {
	var head []byte
	names := slices.Sorted(maps.Keys(part.Header))
	head = appendParts(head, names)
	for _, name := range names {
		head = appendParts(head, part.Header[name])
	}
	content.Reset()
	if _, err := io.CopyBuffer(content, part, buffer); err != nil {
		return false
	}
	parts.Write(content.Sum(head))
	return true
}
