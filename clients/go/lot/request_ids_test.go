package lot_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/lot-grpc/lot-grpc/clients/go/lot"
	lotv1 "github.com/lot-grpc/lot-grpc/clients/go/lot/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// scripted answers the first calls with codes, and the others.
type scripted struct {
	lotv1.UnimplementedMemoryServiceServer
	fails []codes.Code
	ids   []string
}

func (s *scripted) step(ctx context.Context, id string) error {
	s.ids = append(s.ids, id)
	if len(s.fails) == 0 {
		return nil
	}
	code := s.fails[0]
	s.fails = s.fails[1:]
	if code == codes.DeadlineExceeded {
		<-ctx.Done()
	}
	return status.Error(code, "scripted")
}

func (s *scripted) CreateMemory(ctx context.Context, request *lotv1.CreateMemoryRequest) (*lotv1.CreateMemoryResponse, error) {
	return &lotv1.CreateMemoryResponse{}, s.step(ctx, request.GetRequestId())
}

func (s *scripted) BatchCreateMemories(ctx context.Context, request *lotv1.BatchCreateMemoriesRequest) (*lotv1.BatchCreateMemoriesResponse, error) {
	for _, item := range request.GetItems() {
		s.ids = append(s.ids, item.GetRequestId())
	}
	return &lotv1.BatchCreateMemoriesResponse{}, s.step(ctx, "")
}

func serveScripted(t *testing.T, fails ...codes.Code) (*scripted, *lot.Client) {
	t.Helper()
	made, server := &scripted{fails: fails}, grpc.NewServer()
	lotv1.RegisterMemoryServiceServer(server, made)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return made, dialAt(t, listener.Addr().String(), lot.WithNamespace("team"))
}

func create(client *lot.Client, content, id string, timeout ...time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), append(timeout, 30*time.Second)[0])
	defer cancel()
	memory := &lotv1.Memory{Content: content}
	_, err := client.Memories.CreateMemory(ctx, &lotv1.CreateMemoryRequest{Memory: memory, RequestId: id})
	return err
}

func TestTheSameCallAfterAnUncertainFailureHasTheSameRequestID(t *testing.T) {
	server, client := serveScripted(t, codes.DeadlineExceeded, codes.Internal)
	err := create(client, "one", "", 300*time.Millisecond)
	if decoded := lot.ErrorOf(err); decoded.Code != codes.DeadlineExceeded || decoded.RequestID != server.ids[0] {
		t.Errorf("got %+v", decoded)
	}
	_ = create(client, "one", "")
	_ = create(client, "two", "")
	if err := create(client, "one", ""); err != nil {
		t.Error(err)
	}
	_ = create(client, "one", "")
	ids := server.ids
	if ids[0] == "" || ids[1] != ids[0] || ids[3] != ids[0] {
		t.Errorf("repeats have other ids: %v", ids)
	}
	if ids[2] == ids[0] || ids[4] == ids[0] {
		t.Errorf("other calls have the same id: %v", ids)
	}
}

func TestARefusedCallAndOneWithItsOwnIDAreNoRepeats(t *testing.T) {
	server, client := serveScripted(t, codes.InvalidArgument, codes.OK, codes.Internal)
	_ = create(client, "one", "")
	_ = create(client, "one", "")
	_ = create(client, "one", "mine")
	_ = create(client, "one", "mine")
	ids := server.ids
	if ids[0] == ids[1] || ids[2] != "mine" || ids[3] != "mine" {
		t.Errorf("got %v", ids)
	}
}

func TestItemsOfABatchHaveIDsThatARepeatKeeps(t *testing.T) {
	server, client := serveScripted(t, codes.Unknown)
	items := []*lotv1.CreateMemoryItem{{}, {RequestId: "mine"}, {}}
	for range 2 {
		_, _ = client.Memories.BatchCreateMemories(t.Context(), &lotv1.BatchCreateMemoriesRequest{Items: items})
	}
	first, second := server.ids[:3], server.ids[4:7]
	if !slices.Equal(first, second) || first[1] != "mine" || first[0] == "" || first[0] == first[2] {
		t.Errorf("got %v and %v", first, second)
	}
}
