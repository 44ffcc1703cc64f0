package lot_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lot-grpc/lot-grpc/clients/go/lot"
	lotv1 "github.com/lot-grpc/lot-grpc/clients/go/lot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// dial gives a client of the server at LOT_ADDRESS, in a namespace of the test's own.
func dial(t *testing.T) (context.Context, *lot.Client) {
	t.Helper()
	address := os.Getenv("LOT_ADDRESS")
	if address == "" {
		t.Skip("LOT_ADDRESS names no server; `make test-go` starts one")
	}
	client, err := lot.Dial(address, lot.WithNamespace("test-"+rand.Text()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx, client
}

// must gives the answer of a call that has to succeed.
func must[T any](answer T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

func save(ctx context.Context, t *testing.T, client *lot.Client, id string, pattern *lotv1.Pattern) *lotv1.Pattern {
	t.Helper()
	request := &lotv1.SavePatternRequest{PatternId: id, Pattern: pattern}
	return must(client.Patterns.SavePattern(ctx, request))(t).GetPattern()
}

func TestSavedPatternComesBackAsGiven(t *testing.T) {
	ctx, client := dial(t)
	args := must(structpb.NewStruct(map[string]any{"file": "a.yaml", "replicas": 2}))(t)
	saved := save(ctx, t, client, "deploy", &lotv1.Pattern{
		Task:    "Deploy the billing service",
		Kind:    lotv1.PatternKind_PATTERN_KIND_CODE,
		Actions: []*lotv1.Action{{Tool: "kubectl", Args: args}},
		Labels:  map[string]string{"team": "billing"},
	})
	found := must(client.Patterns.GetPattern(ctx, &lotv1.GetPatternRequest{PatternId: "deploy"}))(t).GetPattern()

	if !proto.Equal(found, saved) {
		t.Errorf("got %v, saved %v", found, saved)
	}
	if !proto.Equal(found.GetActions()[0].GetArgs(), args) || found.GetLabels()["team"] != "billing" {
		t.Errorf("got %v", found)
	}
}

func TestRecallGivesOnlyWhatTheFilterLetsThrough(t *testing.T) {
	ctx, client := dial(t)
	save(ctx, t, client, "in-go", &lotv1.Pattern{Task: "Parse a CSV file", Language: "golang"})
	save(ctx, t, client, "in-python", &lotv1.Pattern{Task: "Parse a CSV file", Language: "python"})
	recall := must(client.Patterns.RecallPatterns(ctx, &lotv1.RecallPatternsRequest{
		Query:  "read comma separated values",
		Filter: &lotv1.PatternFilter{Languages: []string{"go"}, MinSuccessRate: proto.Float64(0.9)},
	}))(t)

	if hits := recall.GetHits(); len(hits) != 1 || hits[0].GetPattern().GetPatternId() != "in-go" {
		t.Errorf("got %v", hits)
	}
}

func TestStreamStoresEventsInOrder(t *testing.T) {
	ctx, client := dial(t)
	id := must(client.Episodes.StartEpisode(ctx, &lotv1.StartEpisodeRequest{
		Episode: &lotv1.Episode{Task: "Import the customers"},
	}))(t).GetEpisode().GetEpisodeId()
	stream := must(client.Episodes.RecordEvents(ctx))(t)
	messages := []*lotv1.RecordEventsRequest{{EpisodeId: id}}
	for first := int64(1); first < 6; first += 2 {
		messages = append(messages, &lotv1.RecordEventsRequest{Events: []*lotv1.EpisodeEvent{
			{Sequence: first, EventType: "row"}, {Sequence: first + 1, EventType: "row"},
		}})
	}
	var acknowledged []int64
	for _, message := range messages {
		if err := stream.Send(message); err != nil {
			t.Fatal(err)
		}
		acknowledged = append(acknowledged, must(stream.Recv())(t).GetLastSequence())
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != io.EOF {
		t.Errorf("the stream ended with %v", err)
	}
	var stored []int64
	for _, event := range must(client.Episodes.ListEpisodeEvents(ctx, &lotv1.ListEpisodeEventsRequest{EpisodeId: id}))(t).GetEvents() {
		stored = append(stored, event.GetSequence())
	}

	if !slices.Equal(acknowledged, []int64{0, 2, 4, 6}) {
		t.Errorf("acknowledged %v", acknowledged)
	}
	if !slices.Equal(stored, []int64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("stored %v", stored)
	}
}

func TestOutcomeMovesThePatternOnceForARequestID(t *testing.T) {
	ctx, client := dial(t)
	save(ctx, t, client, "sort", &lotv1.Pattern{Task: "Sort a list"})
	query := "order the items of a list"
	recall := must(client.Patterns.RecallPatterns(ctx, &lotv1.RecallPatternsRequest{Query: query}))(t)
	request := &lotv1.RecordOutcomeRequest{
		PatternIds:  []string{"sort"},
		Outcome:     lotv1.Outcome_OUTCOME_FAILURE,
		RetrievalId: recall.GetRetrievalId(),
		Query:       query,
		RequestId:   rand.Text(),
	}
	must(client.Patterns.RecordOutcome(ctx, request))(t)
	outcomes := must(client.Patterns.RecordOutcome(ctx, request))(t).GetPatterns()[0].GetOutcomes()

	if outcomes.GetFailureCount() != 1 || math.Abs(outcomes.GetSuccessRate()-0.7) > 1e-9 {
		t.Errorf("got %v", outcomes)
	}
	if request.GetNamespace() != "" {
		t.Errorf("the client wrote into the caller's request: %v", request)
	}
}

func TestErrorTellsReasonFactsAndBrokenRules(t *testing.T) {
	ctx, client := dial(t)
	_, err := client.Patterns.GetPattern(ctx, &lotv1.GetPatternRequest{PatternId: "nowhere"})
	missing := lot.ErrorOf(fmt.Errorf("wrapped: %w", err))
	if missing == nil || missing.Code != codes.NotFound || missing.Reason != "PATTERN_NOT_FOUND" || missing.Metadata["id"] != "nowhere" {
		t.Errorf("got %+v", missing)
	}

	_, err = client.Patterns.SavePattern(ctx, &lotv1.SavePatternRequest{
		PatternId: "not allowed",
		Pattern:   &lotv1.Pattern{Confidence: proto.Float64(2)},
	})
	var fields []string
	for _, violation := range lot.ErrorOf(err).Violations {
		fields = append(fields, violation.Field)
	}
	slices.Sort(fields)
	if lot.ReasonOf(err) != "REQUEST_INVALID" || !slices.Equal(fields, []string{"pattern.confidence", "pattern.task", "pattern_id"}) {
		t.Errorf("got %s for %v", lot.ReasonOf(err), fields)
	}
}

func TestNamespaceInTheRequestComesFirst(t *testing.T) {
	ctx, client := dial(t)
	elsewhere := "test-" + rand.Text()
	must(client.Patterns.SavePattern(ctx, &lotv1.SavePatternRequest{
		Namespace: elsewhere, PatternId: "only-there", Pattern: &lotv1.Pattern{Task: "A task"},
	}))(t)
	must(client.Patterns.GetPattern(ctx, &lotv1.GetPatternRequest{Namespace: elsewhere, PatternId: "only-there"}))(t)
	_, err := client.Patterns.GetPattern(ctx, &lotv1.GetPatternRequest{PatternId: "only-there"})

	if lot.ReasonOf(err) != "PATTERN_NOT_FOUND" {
		t.Errorf("got %v", err)
	}
}

func TestErrorsOfOtherThingsHaveNoReason(t *testing.T) {
	for _, err := range []error{nil, errors.New("another")} {
		if lot.ErrorOf(err) != nil || lot.ReasonOf(err) != "" {
			t.Errorf("%v has a reason", err)
		}
	}
}
