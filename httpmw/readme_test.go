package httpmw_test

import (
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
)

// TestReadmeOutcomes holds the README's table of outcomes against the code.
func TestReadmeOutcomes(t *testing.T) {
	t.Parallel()
	sentinels := map[string]error{
		"ErrInFlight": dedupe.ErrInFlight, "ErrLocked": dedupe.ErrLocked, "ErrConflict": dedupe.ErrConflict,
		"ErrKeyReused": dedupe.ErrKeyReused, "ErrKeyMissing": dedupe.ErrKeyMissing, "ErrKeyInvalid": dedupe.ErrKeyInvalid,
		"ErrPayloadTooLarge": dedupe.ErrPayloadTooLarge, "ErrAnswerUnavailable": dedupe.ErrAnswerUnavailable,
		"ErrUncertain": dedupe.ErrUncertain, "ErrStoreUnavailable": dedupe.ErrStoreUnavailable,
	}
	rows := table(t, "outcome | net/http")
	for _, outcome := range dedupe.Outcomes() {
		if outcome.Err() == nil {
			continue
		}
		row, found := rows[2]["`"+outcome.String()+"`"]
		if !found {
			t.Errorf("the table has no row for %v", outcome)
			continue
		}
		if want := strconv.Itoa(httpmw.Status(outcome)); !strings.HasPrefix(row[1], want) {
			t.Errorf("%v: the table says %q, the code %s", outcome, row[1], want)
		}
		if says := strings.Contains(row[1], "`Retry-After`"); says != outcome.Retryable() {
			t.Errorf("%v: the table says Retry-After: %v, the code %v", outcome, says, outcome.Retryable())
		}
		if says := row[3] == "yes"; says != outcome.Retryable() {
			t.Errorf("%v: the table says retry: %q, the code %v", outcome, row[3], outcome.Retryable())
		}
		refusal := &dedupe.Refusal{Outcome: outcome}
		for name, sentinel := range sentinels {
			if says := strings.Contains(row[4], "`"+name+"`"); says != errors.Is(refusal, sentinel) {
				t.Errorf("%v: the table says it matches %s: %v, the code %v", outcome, name, says, !says)
			}
		}
	}
}

// TestReadmeOptions holds the README's table of options against the options there are.
func TestReadmeOptions(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../dedupe/option.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := table(t, "option | default")[0]
	for _, match := range regexp.MustCompile(`(?m)^func (With\w+)\(`).FindAllStringSubmatch(string(source), -1) {
		if _, found := rows["`"+match[1]+"`"]; !found {
			t.Errorf("the table has no row for %s", match[1])
		}
		delete(rows, "`"+match[1]+"`")
	}
	for name := range rows {
		t.Errorf("the table has %s, the code has not", name)
	}
}

// table returns the rows of the README's table whose head contains head, by the text of each column.
func table(t *testing.T, head string) (byColumn []map[string][]string) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(string(readme), "| "+head)
	if !found {
		t.Fatalf("the README has no table %q", head)
	}
	for i, text := range strings.Split(body, "\n")[2:] {
		if !strings.HasPrefix(text, "|") {
			break
		}
		cells := strings.Split(strings.Trim(text, "|"), "|")
		for column, cell := range cells {
			cells[column] = strings.TrimSpace(cell)
			if i == 0 {
				byColumn = append(byColumn, make(map[string][]string))
			}
		}
		for column, cell := range cells {
			byColumn[column][cell] = cells
		}
	}
	return byColumn
}
