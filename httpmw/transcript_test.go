package httpmw_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"
)

// transcript is an answer as it came over the wire: under HTTP/1.1 with the header lines as they
// were sent, under HTTP/2 with them sorted. Date is left out.
type transcript struct {
	Interim []string // 1xx answers with their headers
	Lines   []string // the status, then the headers
	Length  int64
	Body    string
	Trailer http.Header
}

// transcribe sends a request with a key and notes what comes back.
func transcribe(t testing.TB, server *httptest.Server, method string) transcript {
	t.Helper()
	if server.EnableHTTP2 {
		return transcribe2(t, server, method)
	}
	return transcribe1(t, server, method)
}

func transcribe1(t testing.TB, server *httptest.Server, method string) (seen transcript) {
	t.Helper()
	raw := exchange(t, server, fmt.Sprintf("%s /pay HTTP/1.1\r\nHost: test\r\n%s: k\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", method, keyHeader))
	for {
		head, rest, found := bytes.Cut(raw, []byte("\r\n\r\n"))
		if !found {
			t.Fatalf("no header in %q", raw)
		}
		lines := slices.DeleteFunc(strings.Split(string(head), "\r\n"), func(line string) bool {
			return strings.HasPrefix(line, "Date: ")
		})
		if !strings.HasPrefix(lines[0], "HTTP/1.1 1") || strings.HasPrefix(lines[0], "HTTP/1.1 101") {
			seen.Lines = lines
			break
		}
		seen.Interim = append(seen.Interim, strings.Join(lines, "\n"))
		raw = rest
	}
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	seen.readBody(t, response)
	return seen
}

// exchange sends bytes and returns all that come back until the server closes the connection.
func exchange(t testing.TB, server *httptest.Server, request string) []byte {
	t.Helper()
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(connection, request); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(connection)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func transcribe2(t testing.TB, server *httptest.Server, method string) (seen transcript) {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			seen.Interim = append(seen.Interim, strings.Join(append([]string{fmt.Sprint(code)}, headerLines(http.Header(header))...), "\n"))
			return nil
		},
	})
	r := newPost(ctx, t, server.URL+"/pay", "k")
	r.Method = method
	response, err := server.Client().Transport.RoundTrip(r) // which follows no redirects
	if err != nil {
		t.Fatal(err)
	}
	if response.ProtoMajor != 2 {
		t.Fatalf("answered over %s", response.Proto)
	}
	response.Header.Del("Date")
	seen.Lines = append([]string{response.Status}, headerLines(response.Header)...)
	seen.readBody(t, response)
	return seen
}

func (seen *transcript) readBody(t testing.TB, response *http.Response) {
	t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	seen.Length, seen.Body, seen.Trailer = response.ContentLength, string(body), response.Trailer
}

func headerLines(header http.Header) (lines []string) {
	for name, values := range header {
		for _, value := range values {
			lines = append(lines, name+": "+value)
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Compare(nameOf(a), nameOf(b))
	})
	return lines
}

func nameOf(line string) string { return line[:max(0, strings.Index(line, ":"))] }

// without returns the transcript with the headers of these names left out, and the interim answers.
func (seen transcript) without(names ...string) transcript {
	seen.Interim = nil
	if slices.Contains(names, "Content-Length") {
		seen.Length = -1
	}
	seen.Lines = slices.DeleteFunc(slices.Clone(seen.Lines), func(line string) bool {
		return slices.Contains(names, nameOf(line))
	})
	return seen
}

// has reports whether there is this header line.
func (seen transcript) has(line string) bool { return slices.Contains(seen.Lines, line) }
