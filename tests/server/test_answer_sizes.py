"""Answers stay under what a client accepts that sets nothing: 4 MiB, whatever is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor_pb2 import MethodOptions

from lot_grpc.pb.lot.v1 import (
    decision_pb2,
    episode_pb2,
    error_solution_pb2,
    learning_event_pb2,
    memory_pb2,
    outcome_pb2,
    pattern_pb2,
    session_pb2,
)
from lot_grpc.server.answers import ANSWER_BYTES
from tests.server.examples import EXAMPLES, method_of
from tests.server.largest import largest
from tests.server.service import SERVICES, Lot, serving
from tests.server.wire import failure

PB: Any = pattern_pb2
SHORTENED = outcome_pb2.NOTICE_CODE_RESPONSE_TRUNCATED
CLIENT_BYTES = 4 * 2**20
SINGLE_BYTES = 3 * 2**20
"""The largest thing of any kind."""

LARGE: dict[str, Any] = {
    "memory": memory_pb2.Memory,
    "pattern": PB.Pattern,
    "episode": episode_pb2.Episode,
    "event": episode_pb2.EpisodeEvent,
    "error_solution": error_solution_pb2.ErrorSolution,
    "decision": decision_pb2.Decision,
    "learning_event": learning_event_pb2.LearningEvent,
    "message": session_pb2.SessionMessage,
}
VALUE = {"string_value": "x" * 262_000}


@asynccontextmanager
async def plainly(lot: Lot) -> AsyncIterator[Lot]:
    """The same server through a channel that sets nothing."""
    async with grpc.aio.insecure_channel(lot.address) as channel:
        yield replace(lot, channel=channel)


def pattern(n: int, **fields: Any) -> Any:
    return largest(PB.Pattern, n, outcomes=None, kind=2, **fields)


def episode(n: int, **fields: Any) -> Any:
    return largest(episode_pb2.Episode, n, used_episode_ids=None, **{"error": None, **fields})


async def fill(lot: Lot) -> Counter[str]:
    """Store the largest things of every kind; how many there are of each, by their list."""
    for n, name in enumerate(("m", "m1")):
        memory = largest(memory_pb2.Memory, n)
        await lot.memories.CreateMemory(memory=memory, memory_id=name)
    for n, name in enumerate(("p", "p1")):
        await lot.patterns.SavePattern(pattern=pattern(n), pattern_id=name)
    for _ in range(3):
        used = await lot.patterns.RecordOutcome(
            pattern_ids=["p"], outcome=outcome_pb2.OUTCOME_SUCCESS, note="n" * 1024
        )
    EXAMPLES["PatternService.CorrectOutcome"]["outcome_id"] = used.outcome_id
    event = largest(episode_pb2.EpisodeEvent)
    for n, name in enumerate(("e", "e1")):
        await lot.episodes.RecordEpisode(
            episode=episode(n, status=2 + n % 2), episode_id=name, events=[event] * 14
        )
    for n, name in enumerate(("s", "u")):
        solution = largest(error_solution_pb2.ErrorSolution, n, outcomes=None)
        await lot.memories.SaveErrorSolution(error_solution=solution, error_solution_id=name)
    for n, name in enumerate(("d", "d1")):
        decision = largest(decision_pb2.Decision, n)
        await lot.learning.RecordDecision(decision=decision, decision_id=name)
    for n in range(9):
        learned = largest(learning_event_pb2.LearningEvent, n)
        name = "l" if not n else f"l{n}"
        await lot.learning.RecordLearningEvent(learning_event=learned, learning_event_id=name)
    for n in range(15):
        await lot.memories.PutPreference(key=f"k{n}", value=VALUE)
    for n in range(15):
        await lot.memories.PutPreference(key="k", value={"string_value": f"{n}" + "x" * 262_000})
    for n in range(31):
        await lot.memories.PutSessionValue(session_id="c", key=f"v{n:02}", value=VALUE)
    await lot.memories.PutSessionValue(session_id="c", key="k", value={"bool_value": True})
    for n in range(9):
        message = largest(session_pb2.SessionMessage, n)
        await lot.memories.AppendSessionMessage(session_id="c", message=message)
    recall = await lot.patterns.RecallPatterns(query="x0")
    EXAMPLES["LearningService.GetRetrieval"]["retrieval_id"] = recall.retrieval_id
    return Counter(
        memories=2,
        patterns=2,
        outcomes=3,
        episodes=2,
        events=14,
        error_solutions=2,
        decisions=2,
        learning_events=9,
        preferences=16,
    )


async def called(lot: Lot, name: str, **more: Any) -> Any:
    service, method = name.split(".")
    stub = getattr(lot, {"MemoryService": "memories"}.get(service, service[:-7].lower()))
    return await getattr(stub, method)(**{**EXAMPLES[name], **more})


def identity(item: Any) -> Any:
    field = item.DESCRIPTOR.fields[0].name
    return (getattr(item, field), getattr(item, "sequence", 0), item.SerializeToString()[:200])


def methods() -> list[Any]:
    return [method for service in SERVICES.values() for method in service.methods]


def name_of(method: Any) -> str:
    return f"{method.containing_service.name}.{method.name}"


def test_the_largest_thing_of_each_kind_is_less_than_an_answer() -> None:
    sizes = {name: largest(kind).ByteSize() for name, kind in LARGE.items()}
    assert max(sizes.values()) < SINGLE_BYTES < CLIENT_BYTES, sizes


def test_every_answer_that_may_be_long_has_a_token_or_notices() -> None:
    """But for what the contract bounds: names, counts and numbers."""
    short = {
        "GetServerInfo",
        "CheckReady",
        "Embed",
        "SelectAction",
        "RecordSteps",
        "ListActionValues",
        "SeedKnowledge",
        "ReviewRecords",
        "EraseSubject",
    }
    for method in methods():
        fields = method.output_type.fields_by_name
        long = any(
            field.is_repeated
            and field.message_type is not None
            and not field.message_type.GetOptions().map_entry
            for field in method.output_type.fields
        )
        if long and not method.server_streaming and method.name not in short:
            assert {"next_page_token", "notices"} & set(fields), method.name
        listed = "next_page_token" in fields and method.name != "ListNamespaces"
        if listed or any(field.name == "hits" for field in method.output_type.fields):
            assert "read_mask" in method.input_type.fields_by_name, method.name


async def test_everything_is_read_by_a_client_that_sets_nothing() -> None:
    async with serving() as full:
        there = await fill(full)
        async with plainly(full) as lot:
            reads = [
                name_of(method)
                for method in methods()
                if method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
                and not method.server_streaming
            ]
            assert len(reads) > 25
            for name in reads:
                if "next_page_token" not in method_of(name).output_type.fields_by_name:
                    answer = await called(lot, name)
                    assert answer.ByteSize() < CLIENT_BYTES, name
                    continue
                seen: Counter[Any] = Counter()
                token, pages, field = "", 0, ""
                while True:
                    page = await called(lot, name, page_token=token)
                    (field, items), *_ = [
                        (one.name, value) for one, value in page.ListFields() if one.is_repeated
                    ]
                    assert len(items) == 1 or page.ByteSize() < ANSWER_BYTES, name
                    seen.update(identity(item) for item in items)
                    pages += 1
                    token = page.next_page_token
                    if not token:
                        break
                assert set(seen.values()) == {1}, name
                assert len(seen) == there.get(field, len(seen)), name
                if there[field] and field != "outcomes":
                    assert pages > 1, name
            await hits_and_masks(lot)
            await session_and_history(lot)
            await streams(lot)


async def hits_and_masks(lot: Lot) -> None:
    """Hits that do not fit whole come without their long fields, and that is said."""
    for name, field in (
        ("MemoryService.SearchMemories", "memory"),
        ("PatternService.RecallPatterns", "pattern"),
        ("EpisodeService.RecallEpisodes", "episode"),
    ):
        answer = await called(lot, name, query="x0", limit=100)
        assert len(answer.hits) == 2, name
        [notice] = [one for one in answer.notices if one.code == SHORTENED]
        assert notice.field == "hits"
        assert f"{field}.metadata" in notice.message
        assert "read_mask" in notice.message
        assert all(getattr(hit, field).etag for hit in answer.hits), name
        paths = {"paths": [f"{field}_id", "labels"]}
        masked = await called(lot, name, query="x0", limit=100, read_mask=paths)
        assert not [one for one in masked.notices if one.code == SHORTENED]
        for hit in masked.hits:
            set_fields = {one.name for one, _ in getattr(hit, field).ListFields()}
            assert set_fields == {f"{field}_id", "labels"}, name
    candidates = await lot.patterns.ListFeedbackCandidates(limit=100)
    assert len(candidates.patterns) == len(candidates.scores)
    context = await lot.memories.GetTaskContext(task="x0", limit=20)
    assert context.ByteSize() < CLIENT_BYTES
    for method in methods():
        if "read_mask" in method.input_type.fields_by_name:
            wrong = {"paths": ["nothing"]}
            failed = await failure(called(lot, name_of(method), read_mask=wrong))
            assert failed.fields == {"read_mask": "read_mask.path"}, method.name
            assert "valid paths of " in failed.message
            await called(lot, name_of(method), read_mask={"paths": ["*"]})


async def session_and_history(lot: Lot) -> None:
    """What has no token is read on by its numbers."""
    answer = await lot.memories.GetSession(session_id="c")
    assert answer.omitted_keys
    assert {*answer.omitted_keys, *answer.session.values} == {
        "k",
        *(f"v{n:02}" for n in range(31)),
    }
    assert [one.field for one in answer.notices] == ["session.values", "session.messages"]
    read = [one.sequence for one in answer.session.messages]
    while read[0] > 1:
        more = await lot.memories.GetSession(session_id="c", before_sequence=read[0])
        assert not more.session.values
        read = [*(one.sequence for one in more.session.messages), *read]
    assert read == list(range(1, 10))
    few = await lot.memories.GetSession(session_id="c", message_limit=2, before_sequence=5)
    assert [one.sequence for one in few.session.messages] == [3, 4]
    values: list[int] = []
    before = 0
    while True:
        found = await lot.memories.GetPreference(key="k", history_limit=100, before_revision=before)
        values += [int(one.value.string_value.split("x")[0]) for one in found.history]
        if not found.notices:
            break
        assert found.notices[0].field == "history"
        before = found.history[-1].revision
    assert values == list(range(13, -1, -1))


async def streams(lot: Lot) -> None:
    """Each message of a stream is taken too."""
    events = 0
    async for message in lot.episodes.ReplayEpisode(episode_id="e"):
        events += len(message.events)
    assert events == 14
    watched = lot.memories.WatchChanges(from_start=True)
    seen = 0
    async for message in watched:
        seen += len(message.change_events)
        if seen >= 24:
            break
    watched.cancel()
    messages = [message async for message in lot.admin.Export(include_vectors=True)]
    records = [record for message in messages for record in message.records]
    assert len(records) > 50
    assert not [one for one in records if one.memory.memory_id and one.memory.content]
    requests = [
        method_of("AdminService.Import").input_type._concrete_class(
            namespace=f"{lot.namespace}-copy",
            header=messages[0].header if n == 0 else None,
            records=message.records,
        )
        for n, message in enumerate(messages[:-1])
    ]
    for later in requests[1:]:
        later.ClearField("namespace")
    call = lot.channel.stream_stream(
        "/lot.v1.AdminService/Import",
        request_serializer=lambda request: request.SerializeToString(),
    )
    async for _ in call(iter(requests)):
        pass
    copy = (await lot.on(f"{lot.namespace}-copy").memories.GetMemory(memory_id="m")).memory
    assert copy.content == (await lot.memories.GetMemory(memory_id="m")).memory.content


async def test_what_a_write_gives_back_is_taken_too() -> None:
    """What was written is given back without long fields where it would not be received."""
    async with serving() as full, plainly(full) as lot:
        memories = [largest(memory_pb2.Memory, n) for n in range(5)]
        answer = await lot.memories.BatchCreateMemories(
            items=[{"memory": memory, "memory_id": f"m{n}"} for n, memory in enumerate(memories)]
        )
        assert (answer.created_count, len(answer.results)) == (5, 5)
        assert [one.response.memory.memory_id for one in answer.results] == [
            f"m{n}" for n in range(5)
        ]
        [notice] = answer.notices
        assert (notice.code, notice.field) == (SHORTENED, "results")
        assert (await lot.memories.GetMemory(memory_id="m4")).memory.content == memories[4].content
        saved = await lot.patterns.BatchSavePatterns(
            items=[{"pattern": pattern(n), "pattern_id": f"p{n}"} for n in range(5)]
        )
        assert saved.created_count == 5
        recorded = await lot.patterns.RecordOutcome(
            pattern_ids=[f"p{n}" for n in range(5)], outcome=outcome_pb2.OUTCOME_SUCCESS
        )
        assert [one.pattern_id for one in recorded.patterns] == [f"p{n}" for n in range(5)]
        assert [one.code for one in recorded.notices] == [SHORTENED]
        undone = await lot.patterns.CorrectOutcome(outcome_id=recorded.outcome_id)
        assert [one.code for one in undone.notices] == [SHORTENED]
        data = {"tool": "t" * 100, "note": "ü" * 1024, "args": {"a": "ü" * 4000}}
        extracted = await lot.episodes.RecordEpisode(
            episode=episode(0, status=2),
            events=[{"event_type": "step", "data": {**data, "n": n}} for n in range(300)],
            extract_knowledge=True,
        )
        assert extracted.extracted_patterns
        whole = await lot.patterns.ListPatterns(page_size=1)
        assert whole.patterns[0].ByteSize() < SINGLE_BYTES
        actions = whole.patterns[0].actions
        assert (len(actions[0].note), actions[-1].note, actions[-1].tool) == (1024, "", "t" * 100)


async def test_lists_inside_a_thing_are_bounded(lot: Lot) -> None:
    long = pattern(0)
    long.actions.extend(long.actions[:1])
    failed = await failure(lot.patterns.SavePattern(pattern=long))
    assert failed.fields == {"pattern.actions": "repeated.max_bytes"}
    solution = largest(error_solution_pb2.ErrorSolution, outcomes=None)
    solution.steps.extend("x" * 16_000 for _ in range(3))
    failed = await failure(lot.memories.SaveErrorSolution(error_solution=solution))
    assert failed.fields == {"error_solution.steps": "repeated.max_bytes"}


@pytest.mark.parametrize("size", [1, 2, 10, 11, 12, 40])
async def test_pages_of_any_size_give_each_once(lot: Lot, size: int) -> None:
    items = [{"memory": {"content": f"c{n}"}, "memory_id": f"m{n:02}"} for n in range(37)]
    await lot.memories.BatchCreateMemories(items=items)
    found: list[str] = []
    token = ""
    while True:
        page = await lot.memories.ListMemories(page_size=size, page_token=token)
        assert len(page.memories) <= size
        assert len(page.memories) == size or not page.next_page_token
        found += [memory.memory_id for memory in page.memories]
        token = page.next_page_token
        if not token:
            break
    assert found == [f"m{n:02}" for n in reversed(range(37))]
