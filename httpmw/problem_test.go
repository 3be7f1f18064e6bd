package httpmw_test

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
)

func TestStatus(t *testing.T) {
	want := map[dedupe.Outcome]int{
		dedupe.Proceed:           0,
		dedupe.Replay:            0,
		dedupe.InFlight:          http.StatusConflict,
		dedupe.Locked:            http.StatusConflict,
		dedupe.KeyReused:         http.StatusUnprocessableEntity,
		dedupe.KeyMissing:        http.StatusBadRequest,
		dedupe.KeyInvalid:        http.StatusBadRequest,
		dedupe.PayloadTooLarge:   http.StatusRequestEntityTooLarge,
		dedupe.AnswerUnavailable: http.StatusConflict,
		dedupe.Uncertain:         http.StatusConflict,
		dedupe.StoreUnavailable:  http.StatusServiceUnavailable,
	}
	for _, outcome := range dedupe.Outcomes() {
		status, known := want[outcome]
		if got := httpmw.Status(outcome); !known || got != status {
			t.Errorf("%v: got %d, want %d", outcome, got, status)
		}
	}
	if got := httpmw.Status(dedupe.Outcome(255)); got != http.StatusInternalServerError {
		t.Errorf("an outcome that nobody knows: got %d", got)
	}
}

// Every problem type is a link to a section that says what the answer itself says.
func TestProblemsAreExplained(t *testing.T) {
	page, err := os.ReadFile("PROBLEMS.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		sections[heading] = text
	}
	for _, outcome := range dedupe.Outcomes() {
		if outcome.Err() == nil { // not a refusal
			continue
		}
		problem := httpmw.NewProblem(&dedupe.Refusal{Outcome: outcome})
		_, slug, _ := strings.Cut(problem.Type, "#")
		text, explained := sections[slug]
		delete(sections, slug)
		facts := fmt.Sprintf("\nStatus %d %s, `\"retryable\": %t`.\n", problem.Status, http.StatusText(problem.Status), problem.Retryable)
		if !explained || !strings.HasPrefix(text, facts) {
			t.Errorf("PROBLEMS.md has no section %q that begins with %q", slug, facts)
		}
		for _, part := range []string{"What happened:", "What to do:", "Same key again:"} {
			if !strings.Contains(text, "**"+part+"**") {
				t.Errorf("section %q does not have %q", slug, part)
			}
		}
	}
	for slug := range sections {
		t.Errorf("PROBLEMS.md has a section %q that is no problem type", slug)
	}
}

func TestRetryAfter(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                   "1",
		0:                              "1",
		1:                              "1",
		time.Second:                    "1",
		time.Second + 1:                "2",
		90 * time.Second:               "90",
		time.Duration(math.MaxInt64):   "9223372037",
		24*time.Hour - time.Nanosecond: "86400",
	} {
		if got := httpmw.RetryAfter(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
