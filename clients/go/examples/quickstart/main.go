// One round of learning: recall, work, record what happened, say how it went.
//
// Start a server with `make run`, then `go run ./examples/quickstart`. LOT_ADDRESS names another
// server.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/lot-grpc/lot-grpc/clients/go/lot"
	lotv1 "github.com/lot-grpc/lot-grpc/clients/go/lot/v1"
)

const task = "Add a health check endpoint to the orders service"

func main() {
	if err := run(); err != nil {
		log.Fatalf("%s: %v", lot.ReasonOf(err), err)
	}
}

func run() error {
	address := cmp.Or(os.Getenv("LOT_ADDRESS"), "127.0.0.1:50051")
	client, err := lot.Dial(address, lot.WithNamespace("quickstart"))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	_, err = client.Patterns.SavePattern(ctx, &lotv1.SavePatternRequest{Pattern: &lotv1.Pattern{
		Task:     "Add an HTTP endpoint to a net/http service",
		Actions:  []*lotv1.Action{{Tool: "edit", Note: "a handler"}, {Tool: "go test"}},
		Language: "go",
		Tags:     []string{"http"},
	}})
	if err != nil {
		return err
	}

	recall, err := client.Patterns.RecallPatterns(ctx, &lotv1.RecallPatternsRequest{
		Query:  task,
		Filter: &lotv1.PatternFilter{Languages: []string{"go"}},
		Limit:  3,
	})
	if err != nil {
		return err
	}
	best := recall.GetHits()[0]
	fmt.Printf("nearest pattern: %s, similarity %.2f\n", best.GetPattern().GetTask(), best.GetSimilarity())
	fmt.Printf("it is for the same task with a probability of %.2f\n", best.GetMatchProbability())

	if err := work(ctx, client, best.GetPattern().GetActions()); err != nil {
		return err
	}

	learned, err := client.Patterns.RecordOutcome(ctx, &lotv1.RecordOutcomeRequest{
		PatternIds:  []string{best.GetPattern().GetPatternId()},
		Outcome:     lotv1.Outcome_OUTCOME_SUCCESS,
		RetrievalId: recall.GetRetrievalId(),
		Query:       task,
	})
	if err != nil {
		return err
	}
	fmt.Printf("success rate now %.2f\n", learned.GetPatterns()[0].GetOutcomes().GetSuccessRate())
	return nil
}

// work records an episode: the first message opens the stream, each later one carries events and is
// acknowledged once they are stored.
func work(ctx context.Context, client *lot.Client, actions []*lotv1.Action) error {
	started, err := client.Episodes.StartEpisode(ctx, &lotv1.StartEpisodeRequest{
		Episode: &lotv1.Episode{Task: task, Category: "backend"},
	})
	if err != nil {
		return err
	}
	id := started.GetEpisode().GetEpisodeId()
	stream, err := client.Episodes.RecordEvents(ctx)
	if err != nil {
		return err
	}
	messages := []*lotv1.RecordEventsRequest{{EpisodeId: id}}
	for i, action := range actions {
		data, err := lot.NewStruct(map[string]any{"tool": action.GetTool(), "ok": true})
		if err != nil {
			return err
		}
		messages = append(messages, &lotv1.RecordEventsRequest{Events: []*lotv1.EpisodeEvent{
			{Sequence: int64(i + 1), EventType: "tool_call", Data: data},
		}})
	}
	for _, message := range messages {
		// The error of Send is only that the stream ended; Recv says why.
		_ = stream.Send(message)
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		fmt.Printf("events stored: %d\n", answer.GetLastSequence())
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	_, err = client.Episodes.EndEpisode(ctx, &lotv1.EndEpisodeRequest{
		EpisodeId: id, Status: lotv1.EpisodeStatus_EPISODE_STATUS_SUCCEEDED,
	})
	return err
}
