package httpmw_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/httpmw"
)

// TestWire compares bytes: a replay is what the first answer was, its framing included, and under
// HTTP/1.0, which has no chunks, the first answer is what it would be without the guard.
func TestWire(t *testing.T) {
	for _, version := range []string{"1.0", "1.1"} {
		for name, test := range kept {
			t.Run(version+"/"+name, func(t *testing.T) {
				method := test.method
				if method == "" {
					method = http.MethodPost
				}
				request := fmt.Sprintf("%s /pay HTTP/%s\r\nHost: test\r\n%s: k\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", method, version, keyHeader)
				server := http1(t, wrap(t, httpmw.Config{MaxAnswer: 1 << 15}, test.handler, newOnce(t, memstore.New(), dedupe.WithSafeMethods())))
				bare := dateless(exchange(t, http1(t, test.handler), request))
				first := dateless(exchange(t, server, request))
				if version == "1.0" && first != bare {
					t.Errorf("the first answer is\n%.999q\nwithout the guard\n%.999q", first, bare)
				}
				repeat := dateless(exchange(t, server, request))
				if !strings.Contains(repeat, "Idempotent-Replayed: true\r\n") {
					t.Errorf("%.999q is no replay", repeat)
				}
				got, want := final(repeat, "Idempotent-Replayed"), final(first, test.firstOnly...)
				if got != want {
					t.Errorf("the replay is\n%.999q\nthe first answer\n%.999q", got, want)
				}
			})
		}
	}
}

// final returns an answer without interim ones and without the headers of these names.
func final(raw string, names ...string) string {
	for raw[len("HTTP/1.1 ")] == '1' {
		_, raw, _ = strings.Cut(raw, "\r\n\r\n")
	}
	head, body, _ := strings.Cut(raw, "\r\n\r\n")
	lines := slices.DeleteFunc(strings.Split(head, "\r\n"), func(line string) bool { return slices.Contains(names, nameOf(line)) })
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

// Over HTTP/1.0 an answer that cannot be kept leaves its tombstone as well.
func TestUnkeptOverHTTP10(t *testing.T) {
	const request = "POST /pay HTTP/1.0\r\nHost: test\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}"
	for name, handler := range unkept {
		t.Run(name, func(t *testing.T) {
			server := http1(t, wrap(t, httpmw.Config{MaxAnswer: limit}, handler, newOnce(t, memstore.New())))
			bare := dateless(exchange(t, http1(t, handler), request))
			if first := dateless(exchange(t, server, request)); first != bare {
				t.Errorf("the first answer is\n%.999q\nwithout the guard\n%.999q", first, bare)
			}
			if repeat := exchange(t, server, request); !strings.Contains(string(repeat), "#"+dedupe.AnswerUnavailable.String()) {
				t.Errorf("a repeat gets %.999q", repeat)
			}
		})
	}
}

// A connection that is kept alive stays in step: whatever the first answer and its replay were, the next
// one is read where it begins.
func TestOneConnection(t *testing.T) {
	for name, test := range kept {
		t.Run(name, func(t *testing.T) {
			method := test.method
			if method == "" {
				method = http.MethodPost
			}
			server := http1(t, wrap(t, httpmw.Config{MaxAnswer: 1 << 15}, test.handler, newOnce(t, memstore.New(), dedupe.WithSafeMethods())))
			request := fmt.Sprintf("%s /pay HTTP/1.1\r\nHost: test\r\n%s: k\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", method, keyHeader)
			answers := converse(t, server, method, request, 3)
			for i, got := range answers {
				got.check(t, answers[0].status, answers[0].body, i > 0)
			}
		})
	}
}

// converse sends a request several times over one connection and returns the answers, without the
// interim ones.
func converse(t *testing.T, server *httptest.Server, method, request string, times int) (answers []reply) {
	t.Helper()
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(patience))
	reader := bufio.NewReader(connection)
	for len(answers) < times {
		if _, err := io.WriteString(connection, request); err != nil {
			t.Fatal(err)
		}
		response := &http.Response{StatusCode: http.StatusContinue}
		for response.StatusCode < 200 {
			if response, err = http.ReadResponse(reader, &http.Request{Method: method}); err != nil {
				t.Fatalf("answer %d: %v", len(answers)+1, err)
			}
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		answers = append(answers, reply{
			status: response.StatusCode, header: response.Header, body: string(body),
			replayed: response.Header.Get("Idempotent-Replayed") == "true", err: err,
		})
	}
	return answers
}

// Several ranges come with a boundary that is made for the answer. A replay has the same one.
func TestSeveralRanges(t *testing.T) {
	for protocol, start := range protocols {
		t.Run(protocol, func(t *testing.T) {
			server := start(t, onceOver(t, func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("Range", "bytes=1-3,7-9")
				http.ServeContent(w, r, "page.txt", time.Time{}, strings.NewReader(page))
			}))
			first := transcribe(t, server, http.MethodPost)
			if !strings.Contains(first.Body, "Content-Range: bytes 7-9/16000") {
				t.Fatalf("got %q %q", first.Lines, first.Body)
			}
			checkSame(t, "replay", transcribe(t, server, http.MethodPost).without("Idempotent-Replayed"), first)
		})
	}
}
