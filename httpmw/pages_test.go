package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/grpcmw"
	"github.com/interlock-go/interlock/httpmw"
	"github.com/interlock-go/interlock/keyfuncs"
)

const (
	forOwners  = "PUBLISHING.md"
	forClients = "CLIENTS.md"
)

var codeNames = map[string]codes.Code{
	"OK": codes.OK, "CANCELLED": codes.Canceled, "UNKNOWN": codes.Unknown, "INVALID_ARGUMENT": codes.InvalidArgument,
	"DEADLINE_EXCEEDED": codes.DeadlineExceeded, "NOT_FOUND": codes.NotFound, "ALREADY_EXISTS": codes.AlreadyExists,
	"PERMISSION_DENIED": codes.PermissionDenied, "RESOURCE_EXHAUSTED": codes.ResourceExhausted,
	"FAILED_PRECONDITION": codes.FailedPrecondition, "ABORTED": codes.Aborted, "OUT_OF_RANGE": codes.OutOfRange,
	"UNIMPLEMENTED": codes.Unimplemented, "INTERNAL": codes.Internal, "UNAVAILABLE": codes.Unavailable,
	"DATA_LOSS": codes.DataLoss, "UNAUTHENTICATED": codes.Unauthenticated,
}

func TestPublishedProblems(t *testing.T) {
	rows := rowsOf(t, forOwners, "`type` ends in")
	if got, want := len(rows), len(problemOutcomes()); got != want {
		t.Errorf("the table has %d rows, the code %d problems", got, want)
	}
	for _, outcome := range problemOutcomes() {
		refusal := &dedupe.Refusal{Outcome: outcome}
		yes := map[bool]string{true: "yes", false: "no"}[httpmw.NewProblem(refusal).Retryable]
		checkRow(t, rows, link(outcome), strconv.Itoa(httpmw.Status(outcome)), yes, codeName(grpcmw.Code(outcome)), outcome.Reason())
	}
}

// What a client may do with its key is what the problem says of the request.
func TestClientsReactions(t *testing.T) {
	rows := rowsOf(t, forClients, "answer | gRPC")
	rest := rows
	for _, outcome := range problemOutcomes() {
		first := strconv.Itoa(httpmw.Status(outcome)) + " " + link(outcome)
		row := checkRow(t, rows, first, codeName(grpcmw.Code(outcome))+" "+outcome.Reason())
		if same := row[4] == "same"; same != outcome.Retryable() {
			t.Errorf("%v: the table says %q, the code that it may be repeated: %t", outcome, row[4], outcome.Retryable())
		}
		rest = slices.DeleteFunc(slices.Clone(rest), func(row []string) bool { return row[0] == first })
	}
	// The others are answers of the service: a new key after those that are kept, the same after those
	// that are not.
	for _, row := range rest {
		kept := row[4] != "same"
		for _, status := range statusesIn(row[0]) {
			if httpmw.DefaultKeep(status, nil) != kept {
				t.Errorf("the table says %q for %d", row[4], status)
			}
		}
		for _, code := range codesIn(row[1]) {
			if grpcmw.DefaultKeep(code) != kept {
				t.Errorf("the table says %q for %v", row[4], code)
			}
		}
	}
}

func TestPublishedKeys(t *testing.T) {
	for _, row := range rowsOf(t, forOwners, "`Idempotency-Key:`") {
		key, err := keyOf(strings.Trim(row[0], "`"))
		problem, refused := strings.CutPrefix(row[1], "refused: ")
		if refused != (err != nil) || refused && err.Error() != "header Idempotency-Key "+problem {
			t.Errorf("%s: the table says %q, the code gives %q, %v", row[0], row[1], key, err)
		}
		if _, text, found := strings.Cut(row[1], ": "); found && !refused && key != strings.Trim(text, "`") {
			t.Errorf("%s: the table says %s, the code %q", row[0], text, key)
		}
	}
	quoted, _ := keyOf(`"8e03978e-40d5-43dd-bc93-6894a57f9324"`)
	if raw, _ := keyOf("8e03978e-40d5-43dd-bc93-6894a57f9324"); raw != quoted {
		t.Errorf("%q and %q are two keys", raw, quoted)
	}
}

// The pattern in OpenAPI admits what the code takes, and nothing else.
func TestPublishedPattern(t *testing.T) {
	match := regexp.MustCompile(`pattern: '(.*)' }`).FindStringSubmatch(textOf(t, forOwners))
	if match == nil {
		t.Fatal("there is no pattern")
	}
	pattern := regexp.MustCompile(match[1])
	check := func(line string) {
		if _, err := keyOf(line); pattern.MatchString(line) != (err == nil) {
			t.Errorf("%.40q, %d bytes: the pattern says %t, the code %v", line, len(line), err != nil, err)
		}
	}
	var visible []byte // and one of each kind that is not
	for c := byte(' '); c <= '~'; c++ {
		visible = append(visible, c)
	}
	visible = append(visible, 0, '\t', 0x7f, 0x80)
	for _, a := range visible {
		for _, b := range visible {
			for _, line := range []string{string([]byte{a, b}), string([]byte{'"', a, b, '"'}), string([]byte{'k', a, b, 'k'})} {
				if strings.Trim(line, " \t") == line && line != "" { // as HTTP delivers it
					check(line)
				}
			}
		}
		check(strings.TrimSpace(string(rune(a)) + "k"))
	}
	for _, n := range []int{0, 1, 2, 254, 255, 256} {
		for _, text := range []string{"k", `\"`, `\\`} {
			check(`"` + strings.Repeat(text, n) + `"`)
		}
		if n > 0 {
			check(strings.Repeat("k", n))
		}
	}
}

// The OpenAPI fragment has every problem under its status.
func TestPublishedResponses(t *testing.T) {
	text := textOf(t, forOwners)
	named := make(map[string]string) // the name of a response, by status
	for _, match := range regexp.MustCompile(`'(\d+)': { \$ref: '#/components/responses/(\w+)' }`).FindAllStringSubmatch(text, -1) {
		named[match[1]] = match[2]
	}
	want := make(map[string][]string)
	for _, outcome := range problemOutcomes() {
		status := strconv.Itoa(httpmw.Status(outcome))
		want[status] = append(want[status], outcome.String())
	}
	for status, problems := range want {
		described := regexp.MustCompile(`\n    ` + named[status] + `:(?: {|\n     ) description: '(.*?)'`).FindStringSubmatch(text)
		if described == nil || described[1] != strings.Join(problems, ", ") {
			t.Errorf("%s: the fragment says %q, the code %q", status, described, problems)
		}
		delete(named, status)
	}
	if len(named) > 0 {
		t.Errorf("the fragment has responses that the code does not give: %v", named)
	}
}

func TestPublishedPolicy(t *testing.T) {
	rows := rowsOf(t, forOwners, "| HTTP | gRPC")
	kept, released, headers, never := rows[0], rows[1], rows[2], rows[3]

	except := statusesIn(released[1])
	for status := 200; status < 600; status++ {
		says := slices.Contains(statusesIn(kept[1]), status) && !slices.Contains(except, status)
		if says != httpmw.DefaultKeep(status, nil) {
			t.Errorf("%d: the page says that it is kept: %t", status, says)
		}
	}
	for _, code := range codeNames {
		if says := slices.Contains(codesIn(kept[2]), code); says != grpcmw.DefaultKeep(code) {
			t.Errorf("%v: the page says that it is kept: %t", code, says)
		}
	}
	if got, want := quoted(headers[1]), httpmw.DefaultKeepHeaders(); !slices.Equal(got, want) {
		t.Errorf("headers kept: the page says %q, the code %q", got, want)
	}
	for _, name := range quoted(never[1]) {
		if _, err := (httpmw.Config{KeepHeaders: []string{name}}).Middleware(); err == nil {
			t.Errorf("%s can be kept", name)
		}
	}
	for _, name := range quoted(never[2]) {
		if _, err := (grpcmw.Config{KeepMetadata: []string{name}}).Unary(nil); err == nil {
			t.Errorf("%s can be kept as metadata", name)
		}
	}

	// The same in the paragraph for others to paste.
	pasted := regexp.MustCompile(`Answers with ([^:]*?)\s+(?:> )?are\s+(?:> )?not\s+(?:> )?kept`).FindStringSubmatch(textOf(t, forOwners))
	if pasted == nil || !slices.Equal(statusesIn(pasted[1]), except) {
		t.Errorf("the paragraph to paste says that %q are not kept", pasted)
	}
}

func TestPublishedLimits(t *testing.T) {
	const mebibyte = 1 << 20
	readme := rowsOf(t, "../README.md", "option | default")
	said := make(map[string]string)
	for _, row := range rowsOf(t, forOwners, "limit | default") {
		said[row[0]] = row[1]
		for _, option := range regexp.MustCompile("`(With\\w+)`").FindAllString(row[2], 1) {
			checkRow(t, readme, option, row[1])
		}
	}
	if said["body or message that is compared"] != "1 MiB" || said["answer that is kept"] != "1 MiB" || said["retention of answer and key"] != "24 h" {
		t.Errorf("the page says %q", said)
	}
	echo := func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

	handler := onceOver(t, echo)
	record(handler, newRecorded("k", strings.Repeat("x", mebibyte+1))).checkRefused(t, dedupe.PayloadTooLarge)
	record(handler, newRecorded("k", strings.Repeat("x", mebibyte))) // not used up
	if repeat := record(handler, newRecorded("k", strings.Repeat("x", mebibyte))); !repeat.replayed {
		t.Errorf("an answer of 1 MiB: got %d", repeat.status)
	}

	handler = onceOver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, mebibyte+1)) })
	record(handler, newRecorded("k", ""))
	record(handler, newRecorded("k", "")).checkRefused(t, dedupe.AnswerUnavailable)

	synctest.Test(t, func(t *testing.T) {
		handler := onceOver(t, echo)
		record(handler, newRecorded("k", "x"))
		time.Sleep(24*time.Hour - time.Second)
		record(handler, newRecorded("k", "x")).check(t, http.StatusOK, "x", true)
		time.Sleep(2 * time.Second)
		record(handler, newRecorded("k", "x")).check(t, http.StatusOK, "x", false)
	})
}

// The replay that the page shows is what a client sees.
func TestPublishedReplay(t *testing.T) {
	_, shown, found := strings.Cut(textOf(t, forOwners), "```http\n")
	shown, _, ended := strings.Cut(shown, "\n```")
	if !found || !ended {
		t.Fatal("the page shows no replay")
	}
	requests := 0
	guarded := onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", "/withdrawals/12")
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"balance":500}`)
	})
	server := http1(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("X-Request-Id", strconv.Itoa(requests))
		guarded.ServeHTTP(w, r)
	}))
	transcribe(t, server, http.MethodPost)
	seen := transcribe(t, server, http.MethodPost).without("Connection")
	head, body, _ := strings.Cut(shown, "\n\n")
	lines := strings.Split(head, "\n")
	slices.Sort(lines[1:])
	slices.Sort(seen.Lines[1:])
	if !slices.Equal(lines, seen.Lines) || body != seen.Body {
		t.Errorf("the page shows\n%q %q\na client sees\n%q %q", lines, body, seen.Lines, seen.Body)
	}
}

// Every link leads to a section that is there, and every name of ours exists.
func TestPagesLink(t *testing.T) {
	for _, name := range []string{forOwners, forClients} {
		for _, match := range regexp.MustCompile(`\]\(([\w.]+)(?:#([\w-]+))?\)`).FindAllStringSubmatch(textOf(t, name), -1) {
			if target := textOf(t, match[1]); match[2] != "" && !strings.Contains(target, "\n## "+match[2]+"\n") {
				t.Errorf("%s: there is no section %s#%s", name, match[1], match[2])
			}
		}
	}
}

// problemOutcomes are the outcomes that clients are told as problems.
func problemOutcomes() []dedupe.Outcome {
	return slices.DeleteFunc(dedupe.Outcomes(), func(o dedupe.Outcome) bool { return o.Err() == nil })
}

func link(o dedupe.Outcome) string { return fmt.Sprintf("[%s](PROBLEMS.md#%[1]s)", o) }

func codeName(code codes.Code) string {
	for name, c := range codeNames {
		if c == code {
			return name
		}
	}
	return ""
}

// keyOf returns the key in a header line.
func keyOf(line string) (string, error) {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header[keyHeader] = []string{line}
	return keyfuncs.Header(keyHeader)(httpmw.NewRequest(r))
}

func textOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rowsOf returns the cells of the table whose head contains head, by row.
func rowsOf(t *testing.T, name, head string) (rows [][]string) {
	t.Helper()
	_, body, found := strings.Cut(textOf(t, name), "| "+head)
	if !found {
		t.Fatalf("%s has no table %q", name, head)
	}
	for _, text := range strings.Split(body, "\n")[2:] {
		if !strings.HasPrefix(text, "|") {
			break
		}
		cells := strings.Split(strings.Trim(text, "|"), "|")
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(cell)
		}
		rows = append(rows, cells)
	}
	return rows
}

// checkRow returns the only row that begins with the first cell, and checks those that follow it.
func checkRow(t *testing.T, rows [][]string, cells ...string) []string {
	t.Helper()
	for _, row := range rows {
		if row[0] != cells[0] {
			continue
		}
		if !slices.Equal(row[:len(cells)], cells) {
			t.Errorf("the table says %q, the code %q", row, cells)
		}
		return row
	}
	t.Fatalf("the table has no row %q", cells[0])
	return nil
}

// statusesIn returns the statuses in a text such as "401, 4xx".
func statusesIn(text string) (statuses []int) {
	for _, word := range regexp.MustCompile(`\b\d(\d\d|xx)\b`).FindAllString(text, -1) {
		if first, all := strings.CutSuffix(word, "xx"); all {
			for n := range 100 {
				statuses = append(statuses, int(first[0]-'0')*100+n)
			}
			continue
		}
		status, _ := strconv.Atoi(word)
		statuses = append(statuses, status)
	}
	return statuses
}

func codesIn(text string) (found []codes.Code) {
	for _, word := range regexp.MustCompile(`\b[A-Z][A-Z_]+\b`).FindAllString(text, -1) {
		if code, known := codeNames[word]; known {
			found = append(found, code)
		}
	}
	return found
}

// quoted returns the words in backquotes, as names of headers.
func quoted(text string) (names []string) {
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		names = append(names, http.CanonicalHeaderKey(match[1]))
	}
	return names
}
