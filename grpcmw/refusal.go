package grpcmw

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/interlock-go/interlock/dedupe"
)

// Code returns the code with which an outcome is told to clients; OK for those that are not
// refusals.
func Code(o dedupe.Outcome) codes.Code {
	switch o {
	case dedupe.InFlight, dedupe.Locked, dedupe.AnswerUnavailable, dedupe.Uncertain:
		return codes.Aborted
	case dedupe.KeyReused:
		return codes.FailedPrecondition
	case dedupe.KeyMissing, dedupe.KeyInvalid:
		return codes.InvalidArgument
	case dedupe.PayloadTooLarge:
		return codes.ResourceExhausted
	case dedupe.StoreUnavailable:
		return codes.Unavailable
	case dedupe.Proceed, dedupe.Replay:
		return codes.OK
	default:
		return codes.Internal
	}
}

// refused is the error of a call that was turned away. Its text and status are what clients are
// told; the refusal it wraps is for logs.
type refused struct {
	refusal *dedupe.Refusal
	status  *status.Status
}

// Error returns the status as text: errors that wrap this one tell it to clients.
func (r *refused) Error() string { return r.status.String() }

// GRPCStatus is where gRPC looks for the status of an error.
func (r *refused) GRPCStatus() *status.Status { return r.status }

// Unwrap returns the refusal.
func (r *refused) Unwrap() error { return r.refusal }

// refuse returns the error for a call that was turned away, and sets its trailer.
func (i *interceptor) refuse(err error, setTrailer func(metadata.MD)) error {
	var refusal *dedupe.Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	if i.config.Pushback {
		setTrailer(metadata.Pairs("grpc-retry-pushback-ms", pushback(refusal.RetryAfter)))
	}
	return &refused{refusal, newStatus(refusal, i.config.Domain)}
}

// pushback goes by gRFC A6: milliseconds to wait, rounded up, or a negative number not to retry.
func pushback(retryAfter time.Duration) string {
	if retryAfter <= 0 {
		return "-1"
	}
	return strconv.FormatInt(int64((retryAfter+time.Millisecond-1)/time.Millisecond), 10)
}

// newStatus returns what a client is told of a refusal.
func newStatus(refusal *dedupe.Refusal, domain string) *status.Status {
	outcome := refusal.Outcome
	text := outcome.Text()
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: outcome.Reason(), Domain: domain}}
	if outcome == dedupe.KeyMissing || outcome == dedupe.KeyInvalid {
		violation := &errdetails.BadRequest_FieldViolation{Description: text}
		var key *dedupe.KeyError
		if errors.As(refusal.Cause, &key) { // the only cause whose words are meant for clients
			violation.Field = strings.ToValidUTF8(sourceName(key.Source), "\uFFFD")
			violation.Description = strings.ToValidUTF8(key.Problem, "\uFFFD")
			text += ": " + strings.ToValidUTF8(key.Error(), "\uFFFD")
		}
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{violation}})
	}
	if refusal.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(refusal.RetryAfter)})
	}
	s, err := status.New(Code(outcome), text).WithDetails(details...)
	if err != nil {
		panic(err) // Code is not OK, and all texts are UTF-8
	}
	return s
}

// sourceName returns the name in where a key was looked for: "order.id" of "field order.id".
func sourceName(source string) string {
	_, name, found := strings.Cut(source, " ")
	if !found {
		return source
	}
	return name
}
