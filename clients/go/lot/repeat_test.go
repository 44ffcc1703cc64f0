package lot_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lot-grpc/lot-grpc/clients/go/lot"
	lotv1 "github.com/lot-grpc/lot-grpc/clients/go/lot/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// store keeps a pattern once for each request id, and fails by a script first.
type store struct {
	lotv1.UnimplementedPatternServiceServer
	mutex   sync.Mutex
	script  []error
	ids     []string
	saved   map[string]string
	deletes int
}

func (s *store) next() error {
	if len(s.script) == 0 {
		return nil
	}
	err := s.script[0]
	s.script = s.script[1:]
	return err
}

func (s *store) SavePattern(_ context.Context, request *lotv1.SavePatternRequest) (*lotv1.SavePatternResponse, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.ids = append(s.ids, request.GetRequestId())
	if err := s.next(); err != nil {
		return nil, err
	}
	if s.saved == nil {
		s.saved = map[string]string{}
	}
	s.saved[request.GetRequestId()] = request.GetPattern().GetTask()
	return &lotv1.SavePatternResponse{Created: true}, nil
}

func (s *store) DeletePattern(context.Context, *lotv1.DeletePatternRequest) (*lotv1.DeletePatternResponse, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.deletes++
	return &lotv1.DeletePatternResponse{}, s.next()
}

func failure(code codes.Code, reason string, retryAfter time.Duration) error {
	failed := status.New(code, "scripted")
	if reason != "" {
		failed, _ = failed.WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "lot.v1"})
	}
	if retryAfter > 0 {
		failed, _ = failed.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
	}
	return failed.Err()
}

// serve serves at the address, of which port 0 is any free one.
func serve(t *testing.T, address string, served *store, options ...grpc.ServerOption) (*grpc.Server, string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	if served != nil {
		lotv1.RegisterPatternServiceServer(server, served)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return server, listener.Addr().String()
}

func dialAt(t *testing.T, address string, options ...lot.Option) *lot.Client {
	t.Helper()
	client, err := lot.Dial(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestWhatPassesIsRepeatedWithTheSameRequestID(t *testing.T) {
	overloaded := failure(codes.ResourceExhausted, "OVERLOADED", time.Millisecond)
	served := &store{script: []error{
		overloaded,
		failure(codes.Unavailable, "SHUTTING_DOWN", time.Millisecond),
		failure(codes.FailedPrecondition, "NAMESPACE_CLEARING", time.Millisecond),
		failure(codes.Canceled, "", 0),
	}}
	_, address := serve(t, "127.0.0.1:0", served)
	client := dialAt(t, address)
	request := &lotv1.SavePatternRequest{Pattern: &lotv1.Pattern{Task: "A task"}}
	must(client.Patterns.SavePattern(t.Context(), request))(t)

	if len(served.ids) != 5 || len(served.saved) != 1 || served.ids[0] == "" || served.ids[0] != served.ids[4] {
		t.Errorf("came as %v", served.ids)
	}
	if request.GetRequestId() != "" {
		t.Error("the client wrote into the caller's request")
	}

	served.script = []error{overloaded, failure(codes.Unavailable, "SHUTTING_DOWN", time.Millisecond)}
	_, err := client.Patterns.DeletePattern(t.Context(), &lotv1.DeletePatternRequest{PatternId: "p"})
	if lot.ReasonOf(err) != "SHUTTING_DOWN" || served.deletes != 2 {
		t.Errorf("after %d deletes: %v", served.deletes, err)
	}
	served.script = []error{failure(codes.ResourceExhausted, "STORAGE_FULL", 0)}
	_, err = client.Patterns.SavePattern(t.Context(), request)
	if lot.ReasonOf(err) != "STORAGE_FULL" {
		t.Errorf("got %v", err)
	}
}

func TestRepeatsEndWithTheDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, address := serve(t, "127.0.0.1:0", &store{})
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	free := listener.Addr().String()
	_ = listener.Close()
	_, err := dialAt(t, free).Patterns.SavePattern(ctx, &lotv1.SavePatternRequest{})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	closed := dialAt(t, address)
	_ = closed.Close()
	_, err = closed.Patterns.SavePattern(t.Context(), &lotv1.SavePatternRequest{})
	if status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
}

func TestARestartFailsNoSaveAndDoublesNone(t *testing.T) {
	served := &store{}
	server, address := serve(t, "127.0.0.1:0", served)
	client := dialAt(t, address)
	var over atomic.Bool
	var saves sync.Map
	var group sync.WaitGroup
	for caller := range 8 {
		group.Go(func() {
			for n := 0; !over.Load(); n++ {
				task := fmt.Sprintf("task %d of caller %d", n, caller)
				request := &lotv1.SavePatternRequest{Pattern: &lotv1.Pattern{Task: task}}
				if _, err := client.Patterns.SavePattern(t.Context(), request); err != nil {
					t.Error(err)
					return
				}
				saves.Store(task, true)
				time.Sleep(time.Millisecond)
			}
		})
	}
	for range 2 {
		time.Sleep(50 * time.Millisecond)
		server.GracefulStop()
		time.Sleep(50 * time.Millisecond)
		server, _ = serve(t, address, served)
	}
	time.Sleep(50 * time.Millisecond)
	over.Store(true)
	group.Wait()

	stored := map[string]int{}
	for _, task := range served.saved {
		stored[task]++
	}
	count := 0
	saves.Range(func(task, _ any) bool {
		count++
		if stored[task.(string)] != 1 {
			t.Errorf("%v is stored %d times", task, stored[task.(string)])
		}
		return true
	})
	if count != len(served.saved) || count < 8 {
		t.Errorf("%d saves, %d stored", count, len(served.saved))
	}
}

func TestEveryCallIsInTheNamespace(t *testing.T) {
	var came []string
	record := grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		for {
			raw := &emptypb.Empty{}
			if stream.RecvMsg(raw) != nil {
				return nil
			}
			message := dynamicpb.NewMessage(inputOf(method))
			if err := proto.Unmarshal(raw.ProtoReflect().GetUnknown(), message); err != nil {
				return err
			}
			came = append(came, message.Get(message.Descriptor().Fields().ByName("namespace")).String())
			if err := stream.SendMsg(raw); err != nil {
				return err
			}
		}
	})
	_, address := serve(t, "127.0.0.1:0", nil, record)
	var conn grpc.ClientConnInterface
	capture := lot.WithDialOptions(grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, request, reply any, real *grpc.ClientConn,
		invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		conn = real
		return invoke(ctx, method, request, reply, real, options...)
	}))
	client := dialAt(t, address, lot.WithNamespace("team-a"), capture)
	must(client.Admin.CheckReady(t.Context(), &lotv1.CheckReadyRequest{}))(t)
	calls := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("lot.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				calls++
				came = nil
				method := service.Methods().Get(j)
				callAny(t, conn, method)
				expected := []string{"team-a"}
				if method.IsStreamingClient() {
					expected = append(expected, "")
				}
				if fmt.Sprint(came) != fmt.Sprint(expected) {
					t.Errorf("%s came with %q", method.FullName(), came)
				}
			}
		}
		return true
	})
	if calls < 70 {
		t.Errorf("only %d calls", calls)
	}
}

func callAny(t *testing.T, conn grpc.ClientConnInterface, method protoreflect.MethodDescriptor) {
	t.Helper()
	path := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	reply := &emptypb.Empty{}
	if !method.IsStreamingClient() && !method.IsStreamingServer() {
		if err := conn.Invoke(t.Context(), path, dynamicpb.NewMessage(method.Input()), reply); err != nil {
			t.Fatal(err)
		}
		return
	}
	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	stream := must(conn.NewStream(t.Context(), desc, path))(t)
	count := 1
	if method.IsStreamingClient() {
		count = 2
	}
	for range count {
		if err := stream.SendMsg(dynamicpb.NewMessage(method.Input())); err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(reply); err != nil {
			t.Fatal(err)
		}
	}
	_ = stream.CloseSend()
}

func inputOf(path string) protoreflect.MessageDescriptor {
	name := protoreflect.FullName(strings.ReplaceAll(path[1:], "/", "."))
	found, _ := protoregistry.GlobalFiles.FindDescriptorByName(name)
	return found.(protoreflect.MethodDescriptor).Input()
}
