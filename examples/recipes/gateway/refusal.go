package gateway

import (
	"context"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// writeError writes refusals as httpmw does, and leaves all other errors to the gateway. The codes
// alone do not tell: FAILED_PRECONDITION would be 400, and RESOURCE_EXHAUSTED 429.
func writeError(ctx context.Context, mux *runtime.ServeMux, marshaler runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	if refusal := refusalOf(err); refusal != nil {
		httpmw.WriteProblem(w, r, refusal)
		return
	}
	runtime.DefaultHTTPErrorHandler(ctx, mux, marshaler, w, r, err)
}

// domain is the default of grpcmw.Config.Domain.
const domain = "github.com/interlock-go/interlock"

// refusalOf returns the refusal of which grpcmw made a status, nil if err is another error.
func refusalOf(err error) *dedupe.Refusal {
	var refusal *dedupe.Refusal
	details := status.Convert(err).Details()
	for _, detail := range details {
		info, ok := detail.(*errdetails.ErrorInfo)
		if !ok || info.GetDomain() != domain {
			continue
		}
		for _, outcome := range dedupe.Outcomes() {
			if outcome.Err() != nil && outcome.Reason() == info.GetReason() {
				refusal = &dedupe.Refusal{Outcome: outcome}
			}
		}
	}
	if refusal == nil {
		return nil
	}
	for _, detail := range details {
		switch detail := detail.(type) {
		case *errdetails.RetryInfo:
			refusal.RetryAfter = detail.GetRetryDelay().AsDuration()
		case *errdetails.BadRequest:
			for _, violation := range detail.GetFieldViolations() {
				if violation.GetField() != "" {
					refusal.Cause = &dedupe.KeyError{
						Source:  violation.GetField(),
						Problem: violation.GetDescription(),
						Missing: refusal.Outcome == dedupe.KeyMissing,
					}
				}
			}
		}
	}
	return refusal
}
