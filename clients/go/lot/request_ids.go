package lot

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	keptFor  = 10 * time.Minute
	mostKept = 1024
)

// unsettled remembers the request ids of calls that failed and may have been carried out all the same,
// so that the same call, made again, has the same id.
type unsettled struct {
	mutex sync.Mutex
	calls map[[sha256.Size]byte]failedCall
}

type failedCall struct {
	requestID string
	at        time.Time
}

// identifying gives a request id to each write that takes one and has none, in a batch to each item.
func identifying() grpc.UnaryClientInterceptor {
	kept := &unsettled{calls: map[[sha256.Size]byte]failedCall{}}
	return func(
		ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
		invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		message, ok := request.(proto.Message)
		if ok {
			_, ok = writesOf(message.ProtoReflect())
		}
		if !ok {
			return invoke(ctx, method, request, reply, conn, options...)
		}
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil {
			return status.Error(codes.Internal, err.Error())
		}
		key := sha256.Sum256(append([]byte(method+"\x00"), raw...))
		id := kept.take(key)
		named := proto.Clone(message)
		setIDs(named.ProtoReflect(), id)
		if own, has := named.(interface{ GetRequestId() string }); has {
			id = own.GetRequestId()
		}
		err = invoke(ctx, method, named, reply, conn, options...)
		if err == nil {
			return nil
		}
		switch status.Code(err) {
		case codes.DeadlineExceeded, codes.Canceled, codes.Unavailable, codes.Unknown,
			codes.Internal, codes.Aborted, codes.ResourceExhausted:
			kept.keep(key, id)
		}
		return &identifiedError{err, id}
	}
}

// take is the id of the same call if that failed lately, else a new one.
func (u *unsettled) take(key [sha256.Size]byte) string {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	call, found := u.calls[key]
	delete(u.calls, key)
	if found && time.Since(call.at) < keptFor {
		return call.requestID
	}
	return rand.Text()
}

func (u *unsettled) keep(key [sha256.Size]byte, id string) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if len(u.calls) >= mostKept {
		oldest, at := key, time.Now()
		for each, call := range u.calls {
			if call.at.Before(at) {
				oldest, at = each, call.at
			}
		}
		delete(u.calls, oldest)
	}
	u.calls[key] = failedCall{id, time.Now()}
}

// setIDs fills in the ids that are missing: that of the request, or for its n-th item id-n.
func setIDs(request protoreflect.Message, id string) {
	writes, _ := writesOf(request)
	for number, each := range writes {
		field := each.Descriptor().Fields().ByName(requestID)
		own := id
		if each != request {
			own = fmt.Sprintf("%s-%d", id, number)
		}
		if !each.Has(field) {
			each.Set(field, protoreflect.ValueOfString(own))
		}
	}
}

// identifiedError is the error of a call that had a request id.
type identifiedError struct {
	error
	requestID string
}

func (e *identifiedError) Unwrap() error { return e.error }

// GRPCStatus lets status.FromError see the call's status as it is.
func (e *identifiedError) GRPCStatus() *status.Status { return status.Convert(e.error) }

func requestIDOf(err error) string {
	var found *identifiedError
	if errors.As(err, &found) {
		return found.requestID
	}
	return ""
}
