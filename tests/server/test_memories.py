"""MemoryService on the wire: what each call answers, and each error that its comment names."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import memory_pb2, outcome_pb2
from tests.contract.clock import SECOND
from tests.server.service import Lot, output_only
from tests.server.wire import failure

P: Any = memory_pb2
GIVEN_BY_SERVER = (
    "memory_id", "namespace", "etag", "create_time", "update_time", "indexing", "indexing_problem",
    "outcomes",
    "review",
    "superseded_by", "superseded_time",
)  # fmt: skip
LATER = datetime(2100, 1, 1, tzinfo=UTC)
PROJECT: dict[str, Any] = {
    "path": "/src/app",
    "tech_stack": ["python", "grpc"],
    "status": "paused",
    "last_accessed_time": datetime(2024, 1, 1, tzinfo=UTC),
}
SUMMARY = {"key_decisions": ["use gRPC"], "user_feedback": "fine"}


def whole_memory() -> Any:
    """A memory with every field that a caller can set, but for the other details."""
    return P.Memory(
        kind=P.MEMORY_KIND_PROJECT,
        title="The app",
        content="serves the web shop",
        language="PY",
        tags=["shop", "naïve 漢字"],
        labels={"team.name/x": "core=1"},
        metadata={"a.b": {"deep": [1, 2.5, True, None]}},
        importance=0.0,
        pinned=True,
        source_uri="https://example.com/a?b=c#d",
        project=PROJECT,
        expire_time=LATER,
        origin={"kind": "ORIGIN_KIND_TOOL", "name": "pytest"},
        supersedes="old",
        valid_from=datetime(2020, 1, 1, tzinfo=UTC),
        valid_until=LATER,
    )


async def created(lot: Lot, content: str = "water boils at 100 °C", **fields: Any) -> Any:
    beside = {n: fields.pop(n) for n in ("memory_id", "request_id", "namespace") if n in fields}
    answer = await lot.memories.CreateMemory(memory={"content": content, **fields}, **beside)
    return answer.memory


async def found(lot: Lot, query: str, **requested: Any) -> list[str]:
    answer = await lot.memories.SearchMemories(query=query, limit=100, **requested)
    return [hit.memory.memory_id for hit in answer.hits]


# --- creating ---------------------------------------------------------------------------------


async def test_every_field_comes_back_as_it_was_given(lot):
    given = whole_memory()
    unset = {f.name for f in P.Memory.DESCRIPTOR.fields} - {f.name for f, _ in given.ListFields()}
    assert unset == {*GIVEN_BY_SERVER, "ttl", "conversation_summary"}
    await created(lot, "the app of old", memory_id="old")
    answer = await lot.memories.CreateMemory(memory=given)
    assert answer.created
    given.language = "python"
    for again in (
        answer.memory,
        (await lot.memories.GetMemory(memory_id=answer.memory.memory_id)).memory,
        (await lot.memories.SearchMemories(query=given.content)).hits[0].memory,
    ):
        assert output_only(again, *GIVEN_BY_SERVER) == given
        assert again.namespace == lot.namespace
        assert again.etag
        assert again.create_time == again.update_time


async def test_what_is_not_given_has_its_default(lot):
    memory = await created(lot)
    assert memory.kind == P.MEMORY_KIND_NOTE
    assert memory.importance == 0.5
    assert memory.WhichOneof("expiration") is None
    assert memory.WhichOneof("details") is None


async def test_details_say_the_kind_and_come_back(lot):
    project = await created(lot, project={"path": "/x"})
    assert (project.kind, project.project.status) == (P.MEMORY_KIND_PROJECT, "active")
    summary = await created(lot, conversation_summary=SUMMARY)
    assert summary.kind == P.MEMORY_KIND_CONVERSATION_SUMMARY
    assert summary.conversation_summary == P.ConversationSummaryDetails(**SUMMARY)
    failed = await failure(
        lot.memories.CreateMemory(
            memory={"content": "c", "kind": P.MEMORY_KIND_FACT, "project": {"path": "/x"}}
        )
    )
    assert failed.fields == {"memory": "memory.details.kind"}


async def test_what_only_the_server_gives_is_ignored_when_creating(lot):
    answer = await lot.memories.CreateMemory(
        memory={
            "content": "c",
            "namespace": "elsewhere",
            "etag": "made-up",
            "create_time": datetime(1999, 1, 1, tzinfo=UTC),
            "update_time": datetime(1999, 1, 1, tzinfo=UTC),
            "indexing": P.INDEXING_STATE_PENDING,
            "indexing_problem": "made up",
        }
    )
    memory = answer.memory
    assert memory.namespace == lot.namespace
    assert memory.etag != "made-up"
    assert memory.create_time.ToDatetime(UTC).year > 2000


async def test_an_id_inside_must_be_the_one_beside(lot):
    memory = {"content": "c", "memory_id": "m-1"}
    failed = await failure(lot.memories.CreateMemory(memory=memory, memory_id="m-2"))
    assert failed.fields == {"memory.memory_id": "memory_id.beside"}
    answer = await lot.memories.CreateMemory(memory=memory, memory_id="m-1")
    assert answer.memory.memory_id == "m-1"


async def test_an_id_in_use_is_answered_for_the_same_content_and_refused_for_other(lot):
    first = await created(lot, "one", memory_id="m")
    again = await lot.memories.CreateMemory(memory={"content": "one"}, memory_id="m")
    assert (again.created, again.memory) == (False, first)
    failed = await failure(lot.memories.CreateMemory(memory={"content": "two"}, memory_id="m"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "MEMORY_ID_IN_USE")
    assert failed.metadata == {"namespace": lot.namespace, "id": "m"}
    assert failed.details["ResourceInfo"].resource_type == "lot.v1.Memory"


async def test_a_request_id_makes_a_repeat_safe(lot):
    first = await lot.memories.CreateMemory(memory={"content": "c"}, request_id="r")
    again = await lot.memories.CreateMemory(memory={"content": "c"}, request_id="r")
    assert again == first
    failed = await failure(lot.memories.CreateMemory(memory={"content": "d"}, request_id="r"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "REQUEST_ID_REUSED")
    assert failed.metadata == {"request_id": "r", "method": "CreateMemory"}
    assert len(await found(lot, "c")) == 1
    other = await lot.memories.CreateMemory(memory={"content": "c"}, request_id="r2")
    assert other.created


async def test_retries_at_once_create_one(lot):
    answers = await asyncio.gather(
        *(lot.memories.CreateMemory(memory={"content": "c"}, request_id="r") for _ in range(10))
    )
    assert len({answer.memory.memory_id for answer in answers}) == 1
    assert len(await found(lot, "c")) == 1


async def test_a_retry_does_not_bring_back_what_was_deleted(lot):
    memory = await created(lot, "c", request_id="r")
    await lot.memories.DeleteMemory(memory_id=memory.memory_id)
    failed = await failure(lot.memories.CreateMemory(memory={"content": "c"}, request_id="r"))
    assert failed.reason == "MEMORY_NOT_FOUND"
    assert "deleted" in failed.message
    assert await found(lot, "c") == []


async def test_a_long_content_is_stored_whole_and_its_unread_tail_is_told(lot):
    content = "word " * 170_000
    answer = await lot.memories.CreateMemory(memory={"content": content})
    assert answer.memory.content == content
    [notice] = answer.notices
    assert (notice.code, notice.field) == (
        outcome_pb2.NOTICE_CODE_TEXT_TRUNCATED,
        "memory.content",
    )
    answer = await lot.memories.SearchMemories(query=content[:45_000])
    assert [n.code for n in answer.notices] == [outcome_pb2.NOTICE_CODE_QUERY_TRUNCATED]


# --- expiry -----------------------------------------------------------------------------------


async def test_a_time_to_live_becomes_a_time_of_expiry(lot):
    memory = await created(lot, ttl=timedelta(seconds=90))
    micros = memory.expire_time.ToMicroseconds() - memory.create_time.ToMicroseconds()
    assert micros == 90 * SECOND


async def test_a_time_of_expiry_that_has_passed_is_refused(lot):
    for field, value in (("expire_time", datetime(2001, 1, 1, tzinfo=UTC)), ("ttl", timedelta(0))):
        failed = await failure(lot.memories.CreateMemory(memory={"content": "c", field: value}))
        assert set(failed.fields) == {f"memory.{field}"}


async def test_what_expired_is_absent_and_its_id_is_free(lot):
    clock = lot.clock
    await created(lot, "c", memory_id="m", ttl=timedelta(seconds=10))
    clock.advance(9)
    assert await found(lot, "c") == ["m"]
    clock.advance(1)
    assert await found(lot, "c") == []
    for call in (lot.memories.GetMemory(memory_id="m"), lot.memories.DeleteMemory(memory_id="m")):
        assert (await failure(call)).reason == "MEMORY_NOT_FOUND"
    answer = await lot.memories.CreateMemory(memory={"content": "new"}, memory_id="m")
    assert answer.created
    assert await found(lot, "new") == ["m"]


# --- reading and deleting ---------------------------------------------------------------------


async def test_an_unknown_memory_is_named_in_its_namespace(lot):
    for call in (lot.memories.GetMemory(memory_id="m"), lot.memories.DeleteMemory(memory_id="m")):
        failed = await failure(call)
        assert (failed.code, failed.reason) == ("NOT_FOUND", "MEMORY_NOT_FOUND")
        assert failed.metadata == {"namespace": lot.namespace, "id": "m"}
        assert failed.details["ResourceInfo"].resource_name == "m"


async def test_a_deleted_memory_is_gone_and_its_id_is_free(lot):
    memory = await created(lot, "c", memory_id="m")
    failed = await failure(lot.memories.DeleteMemory(memory_id="m", etag="stale"))
    assert (failed.code, failed.reason) == ("ABORTED", "ETAG_MISMATCH")
    assert failed.metadata == {"id": "m", "given": "stale", "current": memory.etag}
    assert (await lot.memories.DeleteMemory(memory_id="m", etag=memory.etag)).deleted
    assert await found(lot, "c") == []
    assert (await failure(lot.memories.DeleteMemory(memory_id="m"))).code == "NOT_FOUND"
    assert not (await lot.memories.DeleteMemory(memory_id="m", allow_missing=True)).deleted
    assert (await lot.memories.CreateMemory(memory={"content": "d"}, memory_id="m")).created


# --- searching --------------------------------------------------------------------------------


async def test_the_nearest_comes_first_and_five_are_the_default(lot):
    for n in range(7):
        await created(lot, f"notes on garden bed number {n}")
    await created(lot, "the staging cluster has three nodes", memory_id="near")
    answer = await lot.memories.SearchMemories(query="the staging cluster has three nodes")
    assert len(answer.hits) == 5
    assert answer.hits[0].memory.memory_id == "near"
    assert answer.hits[0].similarity > 0.8
    assert answer.retrieval_id
    assert not any(hit.score_parts for hit in answer.hits)
    assert not answer.HasField("explanation")
    strict = await found(lot, "the staging cluster has three nodes", min_similarity=0.85)
    assert strict == ["near"]


@pytest.mark.parametrize("ranking", [outcome_pb2.RANKING_BALANCED, outcome_pb2.RANKING_SIMILARITY])
async def test_an_explained_search_says_how_scores_came_about(lot, ranking):
    await created(lot, "one", language="go")
    await created(lot, "two")
    answer = await lot.memories.SearchMemories(
        query="one", explain=True, filter={"languages": ["golang"]}, ranking=ranking
    )
    [hit] = answer.hits
    assert hit.score == pytest.approx(math.fsum(p.value * p.weight for p in hit.score_parts))
    assert hit.score == pytest.approx(hit.similarity)
    told = answer.explanation
    assert (told.candidate_count, told.matching_count, told.namespace_count) == (1, 1, 2)


FILTERS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"kinds": [P.MEMORY_KIND_FACT, P.MEMORY_KIND_SOLUTION]}, {"kind": P.MEMORY_KIND_FACT}, {}),
    ({"languages": ["TS", "go"]}, {"language": "typescript"}, {"language": "javascript"}),
    ({"tags_any": ["x", "y"]}, {"tags": ["y"]}, {"tags": ["z"]}),
    ({"tags_all": ["x", "y"]}, {"tags": ["x", "y"]}, {"tags": ["y"]}),
    ({"labels": {"a.b/c": "d.e"}}, {"labels": {"a.b/c": "d.e"}}, {"labels": {"a.b/c": "d"}}),
    ({"source_uris": ["file:///a"]}, {"source_uri": "file:///a"}, {"source_uri": "file:///ab"}),
    ({"project_statuses": ["paused"]}, {"project": PROJECT}, {"project": {"path": "/x"}}),
    ({"tech_stack": ["grpc"]}, {"project": PROJECT}, {"project": {"tech_stack": ["rest"]}}),
    ({"min_importance": 0.5}, {}, {"importance": 0.49}),
    ({"max_importance": 0.0}, {"importance": 0.0}, {"importance": 0.01}),
    ({"pinned": True}, {"pinned": True}, {}),
    ({"pinned": False}, {}, {"pinned": True}),
    ({"origins": [1, 3]}, {}, {"origin": {"kind": 5}}),
]


@pytest.mark.parametrize(("requested", "inside", "outside"), FILTERS)
async def test_each_filter_lets_through_what_it_should_and_nothing_else(
    lot, requested, inside, outside
):
    await created(lot, "a memory of this test", memory_id="in", **inside)
    await created(lot, "a memory of this test", memory_id="out", **outside)
    assert await found(lot, "a memory of this test", filter=requested) == ["in"]
    assert len(await found(lot, "a memory of this test")) == 2


async def test_filters_by_time_of_creation_leave_their_bounds_out(lot):
    clock = lot.clock
    first = await created(lot, "one", memory_id="1")
    clock.advance(1)
    await created(lot, "two", memory_id="2")
    clock.advance(1)
    third = await created(lot, "three", memory_id="3")
    for requested, expected in (
        ({"created_after": first.create_time}, {"2", "3"}),
        ({"created_before": third.create_time}, {"1", "2"}),
        ({"created_after": first.create_time, "created_before": third.create_time}, {"2"}),
    ):
        assert set(await found(lot, "one", filter=requested)) == expected


def test_every_field_of_the_filter_is_in_a_test_above():
    tried = {name for requested, _, _ in FILTERS for name in requested}
    tried |= {"created_after", "created_before", "superseded", "reviews"}
    assert tried == set(P.MemoryFilter.DESCRIPTOR.fields_by_name)


# --- namespaces -------------------------------------------------------------------------------


async def test_another_namespace_sees_and_changes_nothing(lot):
    await created(lot, "c", memory_id="m")
    other = lot.on(f"{lot.namespace}-other")
    assert await found(other, "c") == []
    for call in (
        other.memories.GetMemory(memory_id="m"),
        other.memories.DeleteMemory(memory_id="m"),
    ):
        failed = await failure(call)
        assert failed.reason == "MEMORY_NOT_FOUND"
        assert failed.metadata["namespace"] == other.namespace
    assert not (await other.memories.DeleteMemory(memory_id="m", allow_missing=True)).deleted
    assert (await other.memories.CreateMemory(memory={"content": "d"}, memory_id="m")).created
    assert (await lot.memories.GetMemory(memory_id="m")).memory.content == "c"
