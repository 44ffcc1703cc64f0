package lot

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Violation is a rule of the contract that a field of the request breaks.
type Violation struct {
	Field       string // path of the field, for example "pattern.task"
	Description string // a sentence for people
	Rule        string // the rule's id, for example "string.max_bytes"
}

// Error is what is known of a failed call.
type Error struct {
	Code    codes.Code
	Message string // a sentence for people
	// Reason is a name of lotv1.ErrorReason without its prefix, for example "PATTERN_NOT_FOUND".
	// Empty: the answer did not come from lot-grpc itself, for example because nothing listens at the
	// address.
	Reason     string
	Metadata   map[string]string // facts beside the reason, as error_reason.proto lists them
	Violations []Violation       // broken rules of a REQUEST_INVALID; the server lists the first 20
	RetryAfter time.Duration     // how long to wait before a repeat; 0: the server does not say
	// RequestID of the write that failed, to repeat it by another client; of a batch the id of the n-th
	// item is RequestID-n. Empty: the call takes none.
	RequestID string
}

// ErrorOf decodes the error of a call, wrapped or not. It is nil for nil and for errors that are not
// of a call.
func ErrorOf(err error) *Error {
	found, ok := status.FromError(err)
	if !ok || found.Code() == codes.OK {
		return nil
	}
	decoded := &Error{Code: found.Code(), Message: found.Message(), RequestID: requestIDOf(err)}
	for _, detail := range found.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			decoded.Reason = detail.GetReason()
			decoded.Metadata = detail.GetMetadata()
		case *errdetails.RetryInfo:
			decoded.RetryAfter = detail.GetRetryDelay().AsDuration()
		case *errdetails.BadRequest:
			for _, each := range detail.GetFieldViolations() {
				decoded.Violations = append(decoded.Violations, Violation{
					Field: each.GetField(), Description: each.GetDescription(), Rule: each.GetReason(),
				})
			}
		}
	}
	return decoded
}

// ReasonOf is the Reason of a call's error, and empty for all other errors.
func ReasonOf(err error) string {
	if decoded := ErrorOf(err); decoded != nil {
		return decoded.Reason
	}
	return ""
}
