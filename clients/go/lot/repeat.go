package lot

import (
	"context"
	"math"
	randv2 "math/rand/v2"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

const (
	defaultTimeout = 30 * time.Second
	firstDelay     = 100 * time.Millisecond
	maxDelay       = 2 * time.Second
	requestID      = protoreflect.Name("request_id")
)

// repeating makes a call again until its deadline while that is safe and may help.
func repeating(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
	}
	safe := reads(method)
	if message, ok := request.(proto.Message); ok && !safe {
		_, safe = writesOf(message.ProtoReflect())
	}
	for failures := 1; ; failures++ {
		err := invoke(ctx, method, request, reply, conn, options...)
		if err == nil || ctx.Err() != nil {
			return err
		}
		failure := ErrorOf(err)
		// OVERLOADED is sent before anything is done, so even an unsafe call may be repeated.
		if !transient(failure) || !(safe || failure.Reason == "OVERLOADED") {
			return err
		}
		end, _ := ctx.Deadline()
		left := time.Until(end)
		least := max(firstDelay, failure.RetryAfter)
		if least >= left {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(min(delay(failures, failure.RetryAfter), max(least, left/2))):
		}
	}
}

// delay is how long to wait after so many failures in a row, of which the last asked for retryAfter.
func delay(failures int, retryAfter time.Duration) time.Duration {
	grown := min(float64(maxDelay), float64(firstDelay)*math.Pow(2, float64(failures-1)))
	spread := 0.5 + randv2.Float64()/2
	return max(time.Duration(grown*spread), time.Duration(float64(retryAfter)*(0.5+spread)))
}

// transient tells whether the same call may succeed a little later. A server that stops drops calls
// that came just before, without a reason.
func transient(failure *Error) bool {
	if strings.Contains(failure.Message, "failed to verify certificate") {
		return false // the server's certificate was refused here, which no retry changes
	}
	if failure.Code == codes.Unavailable || failure.RetryAfter > 0 {
		return true
	}
	if failure.Reason != "" || strings.Contains(failure.Message, "client connection is closing") {
		return false
	}
	return failure.Code == codes.Canceled || strings.Contains(failure.Message, "RST_STREAM")
}

// reads tells whether the contract says that a call changes nothing.
func reads(method string) bool {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return false
	}
	options, ok := found.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}

// writesOf gives what has a request id, the request or its items, and whether there is such a field.
func writesOf(request protoreflect.Message) ([]protoreflect.Message, bool) {
	fields := request.Descriptor().Fields()
	if fields.ByName(requestID) != nil {
		return []protoreflect.Message{request}, true
	}
	for i := range fields.Len() {
		field := fields.Get(i)
		if !field.IsList() || field.Message() == nil || field.Message().Fields().ByName(requestID) == nil {
			continue
		}
		var writes []protoreflect.Message
		for n := range request.Get(field).List().Len() {
			writes = append(writes, request.Get(field).List().Get(n).Message())
		}
		return writes, true
	}
	return nil, false
}
