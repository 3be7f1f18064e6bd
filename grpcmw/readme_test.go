package grpcmw_test

import (
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/grpcmw"
)

// TestReadmeOutcomes holds the README's column for gRPC against the code.
func TestReadmeOutcomes(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[codes.Code]string{
		codes.Aborted: "ABORTED", codes.FailedPrecondition: "FAILED_PRECONDITION", codes.InvalidArgument: "INVALID_ARGUMENT",
		codes.ResourceExhausted: "RESOURCE_EXHAUSTED", codes.Unavailable: "UNAVAILABLE",
	}
	for _, outcome := range dedupe.Outcomes() {
		if outcome.Err() == nil {
			continue
		}
		want := "`" + names[grpcmw.Code(outcome)] + "`"
		if outcome.Retryable() {
			want += ", RetryInfo"
		}
		found := false
		for line := range strings.Lines(string(readme)) {
			if strings.Contains(line, "| `"+outcome.String()+"` |") {
				found = strings.HasSuffix(strings.TrimSpace(line), "| "+want+" |")
			}
		}
		if !found {
			t.Errorf("the table does not say %s for %v", want, outcome)
		}
	}
}
