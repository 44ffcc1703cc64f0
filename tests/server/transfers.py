"""Exports and imports on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from tests.server.service import Lot

DAY = 24 * 3600


async def exported(lot: Lot, **requested: Any) -> list[pb.ExportResponse]:
    return [message async for message in lot.admin.Export(**requested)]


def records_of(messages: Sequence[pb.ExportResponse]) -> list[pb.ExportRecord]:
    return [record for message in messages for record in message.records]


async def imported(
    lot: Lot, messages: Sequence[pb.ExportResponse], **opening: Any
) -> pb.ImportResponse:
    """The last acknowledgement of an import of all messages."""
    opening.setdefault("namespace", lot.namespace)
    first = pb.ImportRequest(header=messages[0].header, **opening)
    requests = [first, *(_carrying(one) for one in messages if one.records)]
    acks = [ack async for ack in lot.admin.Import(iter(requests), timeout=60)]
    assert len(acks) == len(requests)
    last: pb.ImportResponse = acks[-1]
    return last


def _carrying(message: pb.ExportResponse) -> pb.ImportRequest:
    return pb.ImportRequest(records=message.records, cursor=message.cursor)


async def fill(lot: Lot) -> None:
    """A little of everything."""
    patterns, memories, learning = lot.patterns, lot.memories, lot.learning
    for number in range(3):
        await patterns.SavePattern(
            pattern={"task": f"log in to site {number}", "code": "def login_form(): ..."}
        )
    named = {"pattern_id": "p", "pattern": {"task": "deploy the site", "labels": {"a.b": "c"}}}
    await patterns.SavePattern(**named, initial_success_rate=0.25)
    await patterns.SavePattern(pattern={"task": "deploy it", "supersedes": "p"}, pattern_id="q")
    for outcome in (1, 2, 3):
        used = await patterns.RecordOutcome(
            pattern_ids=["p", "q"], outcome=outcome, query="how to deploy", reward=0.5
        )
    await patterns.CorrectOutcome(outcome_id=used.outcome_id, outcome=1)
    await patterns.RecordPatternFeedback(pattern_id="p", helpful=True, text="good")
    await memories.CreateMemory(memory={"content": "the port is 8080"}, memory_id="m")
    await memories.CreateMemory(
        memory={"content": "soon gone", "ttl": {"seconds": DAY}}, memory_id="gone"
    )
    await memories.SaveErrorSolution(
        error_solution={"error_message": "KeyError: 'a'", "resolution": "use get"},
        error_solution_id="s",
    )
    await memories.RecordErrorSolutionOutcome(error_solution_id="s", outcome=1)
    for value in ("dark", "light", "none"):
        await memories.PutPreference(key="theme", value={"string_value": value})
    await memories.PutSessionValue(session_id="c", key="k", value={"number_value": 1.5})
    for number in range(3):
        await memories.AppendSessionMessage(
            session_id="c", message={"role": "user", "content": f"message {number}"}
        )
    await lot.episodes.RecordEpisode(
        episode={"task": "fix the tests", "status": "EPISODE_STATUS_SUCCEEDED"},
        episode_id="e",
        events=[{"event_type": "step", "data": {"n": n, "half": n / 2}} for n in range(5)],
    )
    await lot.episodes.StartEpisode(episode={"task": "still running"}, episode_id="r")
    await lot.episodes.RecordEvent(episode_id="r", event={"event_type": "step"})
    await learning.RecordLearningEvent(learning_event={"event_type": "success", "reward": 1})
    await learning.RecordDecision(
        decision={"context": "which store?", "chosen_option": "edge"}, decision_id="d"
    )
    await learning.RecordDecisionOutcome(decision_id="d", outcome=1)
    await learning.RecordSteps(steps=[{"state": {"task_type": "t"}, "action": "a", "reward": 0.5}])
    await lot.patterns.RecallPatterns(query="log in")
    await lot.learning.ListRetrievals()  # writes what waits
    await lot.admin.UpdateNamespacePolicy(policy={"max_patterns": 99})


COUNTS = {
    "PATTERN": 5, "OUTCOME": 9, "MEMORY": 2, "ERROR_SOLUTION": 1, "PREFERENCE": 1, "SESSION": 1,
    "EPISODE": 2, "EPISODE_EVENT": 6, "LEARNING_EVENT": 1, "DECISION": 1, "ACTION_VALUE": 1,
    "POLICY": 1, "RETRIEVAL": 1,
}  # fmt: skip


def bare(messages: Sequence[pb.ExportResponse]) -> list[pb.ExportRecord]:
    """What two exports of the same content have in common."""
    records = []
    for record in records_of(messages):
        copy = pb.ExportRecord()
        copy.CopyFrom(record)
        records.append(placeless(copy))
    return records


def placeless(message: Any) -> Any:
    """A message, without what depends on the namespace of the records in it."""
    for field, value in message.ListFields():
        if field.name in ("namespace", "etag"):
            message.ClearField(field.name)
        elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for inner in value if field.is_repeated else (value,):
                placeless(inner)
    return message
