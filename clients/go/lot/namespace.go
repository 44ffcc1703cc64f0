package lot

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func unaryIn(namespace string) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
		invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		return invoke(ctx, method, filled(request, namespace), reply, conn, options...)
	}
}

func streamIn(namespace string) grpc.StreamClientInterceptor {
	return func(
		ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
		open grpc.Streamer, options ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, conn, method, options...)
		if err != nil {
			return nil, err
		}
		return &namespaceStream{ClientStream: stream, namespace: namespace}, nil
	}
}

// namespaceStream puts the namespace into the first message, the only one that may have one.
type namespaceStream struct {
	grpc.ClientStream
	namespace string
	opened    bool
}

func (s *namespaceStream) SendMsg(message any) error {
	if !s.opened {
		s.opened = true
		message = filled(message, s.namespace)
	}
	return s.ClientStream.SendMsg(message)
}

// filled is the request with the namespace where it names none: a copy, since the caller may send the
// message again by another client.
func filled(request any, namespace string) any {
	message, ok := request.(proto.Message)
	if !ok {
		return request
	}
	field := message.ProtoReflect().Descriptor().Fields().ByName("namespace")
	if field == nil || message.ProtoReflect().Has(field) {
		return request
	}
	copied := message.ProtoReflect().New()
	message.ProtoReflect().Range(func(each protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		copied.Set(each, value)
		return true
	})
	copied.Set(field, protoreflect.ValueOfString(namespace))
	return copied.Interface()
}
