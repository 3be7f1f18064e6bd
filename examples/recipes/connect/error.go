package connect

import (
	"errors"

	"connectrpc.com/connect"
	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/httpmw"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
)

// toStatus returns a handler's error as gRPC has it. The codes of Connect are those of gRPC.
func toStatus(err error) error {
	s := &spb.Status{Code: int32(connect.CodeOf(err)), Message: err.Error()} //nolint:gosec // codes are small
	if codes.Code(s.GetCode()) == codes.OK {                                 //nolint:gosec // and not negative
		s.Code = int32(codes.Unknown) // an error is never a success
	}
	var failure *connect.Error
	if errors.As(err, &failure) && failure != nil {
		s.Message = failure.Message()
		for _, detail := range failure.Details() {
			s.Details = append(s.Details, &anypb.Any{TypeUrl: "type.googleapis.com/" + detail.Type(), Value: detail.Bytes()})
		}
	}
	return status.ErrorProto(s)
}

// fromStatus returns the error of grpcmw as Connect has it.
func fromStatus(err error) *connect.Error {
	s := status.Convert(err)
	failure := connect.NewError(connect.Code(s.Code()), &told{s.Message(), err})
	for _, detail := range s.Proto().GetDetails() {
		if d, err := connect.NewErrorDetail(detail); err == nil {
			failure.AddDetail(d)
		}
	}
	if refusal := refusalIn(err); refusal != nil && refusal.RetryAfter > 0 {
		failure.Meta().Set("Retry-After", httpmw.RetryAfter(refusal.RetryAfter))
	}
	return failure
}

// refusalIn returns the refusal that err is, nil if it is an answer that was kept.
func refusalIn(err error) *dedupe.Refusal {
	var refusal *dedupe.Refusal
	errors.As(err, &refusal)
	return refusal
}

// told is an error in the words that clients are told. It matches what the error matches that it
// wraps, for interceptors further out.
type told struct {
	text string
	err  error
}

func (t *told) Error() string { return t.text }

// Unwrap returns the error behind the words.
func (t *told) Unwrap() error { return t.err }
