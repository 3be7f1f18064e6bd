package keyfuncs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

// formPart is one part of a form: the lines of its header, and its bytes.
type formPart struct {
	header textproto.MIMEHeader
	body   string
}

func field(name, value string) formPart {
	return formPart{textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="%s"`, name)}}, value}
}

func file(name, fileName, contentType, body string) formPart {
	return formPart{textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name="%s"; filename="%s"`, name, fileName)},
		"Content-Type":        {contentType},
	}, body}
}

// form returns a request with the parts; the boundary is random unless it is given.
func form(boundary string, parts ...formPart) request {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if boundary != "" {
		must(w.SetBoundary(boundary))
	}
	for _, p := range parts {
		part, err := w.CreatePart(p.header)
		must(err)
		_, err = io.WriteString(part, p.body)
		must(err)
	}
	must(w.Close())
	return withPayload(w.FormDataContentType(), body.String())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func TestMultipart(t *testing.T) {
	invoice := file("doc", "a.pdf", "application/pdf", "%PDF")
	base := form("", field("amount", "7"), invoice)
	wantSame(t, keyfuncs.Multipart, base,
		form("", field("amount", "7"), invoice),
		form("x", field("amount", "7"), invoice),
	)
	related := form("x", field("amount", "7"), invoice)
	related.payload.ContentType = "multipart/related; boundary=x"
	typed := form("x", field("amount", "7"), invoice)
	typed.payload.ContentType += "; profile=2"
	line := field("amount", "7")
	line.header["X-Line"] = []string{"a", "b"}
	otherLine := field("amount", "7")
	otherLine.header["X-Other"] = []string{"a", "b"}
	lines := field("amount", "7")
	lines.header["X-Line"] = []string{"a"}
	quoted := field("amount", "=37")
	quoted.header["Content-Transfer-Encoding"] = []string{"quoted-printable"}
	decoded := field("amount", "7")
	decoded.header["Content-Transfer-Encoding"] = []string{"quoted-printable"}
	wantApart(t, keyfuncs.Multipart, base, related, typed,
		form("", quoted, invoice),
		form("", decoded, invoice),
		form(""),
		form("", field("amount", "7")),
		form("", invoice),
		form("", invoice, field("amount", "7")),
		form("", field("amount", "8"), invoice),
		form("", field("amounT", "7"), invoice),
		form("", field("amount", ""), field("7", ""), invoice),
		form("", field("amount", "7"), invoice, invoice),
		form("", field("amount", "7"), file("doc", "b.pdf", "application/pdf", "%PDF")),
		form("", field("amount", "7"), file("doc", "a.pdf", "text/plain", "%PDF")),
		form("", field("amount", "7"), file("doc", "a.pdf", "application/pdf", "%PDF ")),
		form("", line, invoice),
		form("", otherLine, invoice),
		form("", lines, invoice),
	)
}

// What a handler cannot read as a form is compared byte by byte with its content type.
func TestMultipartOfOtherPayloads(t *testing.T) {
	whole := form("x", field("amount", "7"), field("to", "8"))
	body, contentType := string(whole.payload.Body), whole.payload.ContentType
	requests := []request{whole}
	for i := range body { // cut short anywhere
		cut := withPayload(contentType, body[:i])
		if _, _, ok := readForm(cut.payload); !ok {
			requests = append(requests, cut)
		}
	}
	requests = append(requests,
		withPayload("multipart/form-data", body),
		withPayload("multipart/form-data; boundary=", body),
		withPayload("multipart/form-data; boundary=x; boundary=y", body),
		withPayload("text/plain; boundary=x", body),
		withPayload("text/plain; boundary=x", "before the parts\r\n"+body),
		withPayload("application/json", body),
		withPayload("application/json", body+" "),
		withPayload("bank.v1.Transfer", body),
		withPayload("", body),
		withPayload("", ""),
		withPayload(contentType, strings.Replace(body, "Content-Disposition:", "Content-Disposition", 1)),
	)
	wantApart(t, keyfuncs.Multipart, requests...)
}

// A form of 1,000 parts is still compared by its parts.
func TestMultipartOfManyParts(t *testing.T) {
	parts := slices.Repeat([]formPart{field("amount", "7")}, 1_001)
	wantSame(t, keyfuncs.Multipart, form("x", parts[1:]...), form("y", parts[1:]...))
	wantApart(t, keyfuncs.Multipart, form("x", parts[1:]...), form("x", parts...), form("y", parts...))
}

// A guard's payload must not be modified, nor copied: neither a form of one file nor one of many parts
// costs more than a small multiple of it.
func TestMultipartCostsLittle(t *testing.T) {
	const size = 1 << 20
	tiny := "--x\r\n\r\n\r\n"
	for name, test := range map[string]struct {
		r     request
		times uint64
	}{
		"file":  {form("x", file("doc", "a", "b", strings.Repeat("a", size))), 1},
		"parts": {withPayload("multipart/form-data; boundary=x", strings.Repeat(tiny, size/len(tiny))+"--x--\r\n"), 10},
		"lines": {withPayload("multipart/form-data; boundary=x", "--x\r\n"+strings.Repeat("a:\r\n", size/4)+"\r\n\r\n--x--\r\n"), 10},
	} {
		before := bytes.Clone(test.r.payload.Body)
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		covers(t, keyfuncs.Multipart, test.r)
		runtime.ReadMemStats(&end)
		t.Logf("%s: %d KiB allocated", name, (end.TotalAlloc-start.TotalAlloc)>>10)
		if end.TotalAlloc-start.TotalAlloc > test.times*size {
			t.Errorf("%s: allocated %d bytes", name, end.TotalAlloc-start.TotalAlloc)
		}
		if !bytes.Equal(before, test.r.payload.Body) {
			t.Errorf("%s: the payload was modified", name)
		}
	}
}

// readForm reads a form as a handler would, part by part, or reports that it is none.
func readForm(p dedupe.Payload) (mediaType string, parts []formPart, ok bool) {
	mediaType, parameters, err := mime.ParseMediaType(p.ContentType)
	if err != nil || !strings.HasPrefix(mediaType, "multipart/") {
		return "", nil, false
	}
	reader := multipart.NewReader(bytes.NewReader(p.Body), parameters["boundary"])
	for {
		part, err := reader.NextRawPart()
		if err == io.EOF {
			return mediaType, parts, true
		}
		if err != nil {
			return "", nil, false
		}
		body, err := io.ReadAll(part)
		if err != nil {
			return "", nil, false
		}
		parts = append(parts, formPart{part.Header, string(body)})
	}
}

// FuzzMultipart checks that two bodies have one fingerprint only if they are the same, or a handler reads
// the same form out of them.
func FuzzMultipart(f *testing.F) {
	whole := form("x", field("amount", "7"), file("doc", "a.pdf", "application/pdf", "%PDF"))
	other := form("y", field("amount", "7"), file("doc", "a.pdf", "application/pdf", "%PDF"))
	f.Add(whole.payload.Body, other.payload.Body, "multipart/form-data; boundary=x", "multipart/form-data; boundary=y")
	f.Add([]byte("--x--"), []byte("a\n--x--\nb"), "multipart/form-data; boundary=x", "multipart/mixed; boundary=x")
	f.Add([]byte("--x\n\na\n--x--"), []byte("--x\r\n\r\na\r\n--x--"), "multipart/form-data; boundary=x", "multipart/form-data; boundary=x")
	f.Add([]byte("{}"), []byte("{}"), "application/json", "")
	f.Add([]byte("--x\n\na"), []byte("--x\n\nb"), "multipart/form-data; boundary=x", "multipart/form-data; boundary=x")
	f.Fuzz(func(t *testing.T, one, two []byte, oneType, twoType string) {
		a, b := withPayload(oneType, string(one)), withPayload(twoType, string(two))
		same := covers(t, keyfuncs.Multipart, a) == covers(t, keyfuncs.Multipart, b)
		if oneType == twoType && bytes.Equal(one, two) {
			if !same {
				t.Error("two fingerprints of one payload")
			}
			return
		}
		aType, aParts, aOK := readForm(a.payload)
		bType, bParts, bOK := readForm(b.payload)
		if same && (!aOK || !bOK || aType != bType || !reflect.DeepEqual(aParts, bParts)) {
			t.Errorf("one fingerprint of %q: %q and %q: %q", oneType, one, twoType, two)
		}
	})
}

// Two attempts at one form: byte by byte they are different, part by part they are not.
func ExampleMultipart() {
	attempt := func() dedupe.Request {
		var body bytes.Buffer
		w := multipart.NewWriter(&body) // with a new boundary
		err := errors.Join(w.WriteField("amount", "7"), w.Close())
		if err != nil {
			panic(err)
		}
		return request{payload: dedupe.Payload{ContentType: w.FormDataContentType(), Body: body.Bytes()}}
	}
	first, second := attempt(), attempt()

	a, _ := keyfuncs.Body(first)
	b, _ := keyfuncs.Body(second)
	fmt.Println(bytes.Equal(a, b))
	a, _ = keyfuncs.Multipart(first)
	b, _ = keyfuncs.Multipart(second)
	fmt.Println(bytes.Equal(a, b))
	// Output:
	// false
	// true
}
