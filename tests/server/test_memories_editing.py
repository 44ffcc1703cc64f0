"""Memories on the wire: batches, edits, lists, deletes by a filter, passages of long ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest

from lot_grpc.pb.lot.v1 import memory_pb2, outcome_pb2, pattern_service_pb2
from tests.contract.clock import SECOND
from tests.server.service import Lot
from tests.server.wire import failure

P: Any = memory_pb2
EXACT = pattern_service_pb2.DEDUPE_EXACT
STRANGE = [
    "100%",
    "a_b",
    "a.b.c",
    "k=v",
    "it's",
    'say "hi"',
    "back\\slash",
    "漢字",
    "مرحبا بالعالم",
    "👩‍🚀🙂",
    "été",
    "\u202emirrored",
    "*",
    "${x}",
    "a\tb\nc",
]
"""Values that filters, paths and patterns of other systems take for something else."""


async def created(lot: Lot, content: str = "water boils at 100 °C", **fields: Any) -> Any:
    memory_id = fields.pop("memory_id", "")
    memory = {"content": content, **fields}
    return (await lot.memories.CreateMemory(memory=memory, memory_id=memory_id)).memory


async def updated(lot: Lot, memory_id: str, *paths: str, etag: str = "", **fields: Any) -> Any:
    answer = await lot.memories.UpdateMemory(
        memory_id=memory_id, memory=fields, update_mask={"paths": paths}, etag=etag
    )
    return answer.memory


async def listed(lot: Lot, **requested: Any) -> list[str]:
    answer = await lot.memories.ListMemories(filter=requested, page_size=1000)
    return [one.memory_id for one in answer.memories]


# --- batches ----------------------------------------------------------------------------------


async def test_a_batch_answers_each_item_as_a_create_would(lot: Lot) -> None:
    await created(lot, memory_id="there")
    answer = await lot.memories.BatchCreateMemories(
        items=[
            {"memory": {"content": "one"}, "memory_id": "one", "request_id": "r"},
            {"memory": {"content": "other"}, "memory_id": "there"},
            {"memory": {"content": "two", "memory_id": "x"}, "memory_id": "y"},
            {"memory": {"content": "three"}, "dedupe": EXACT},
            {"memory": {"content": "three", "tags": ["t"]}, "dedupe": EXACT},
            {"memory": {"content": "one"}, "memory_id": "one", "request_id": "r"},
        ]
    )
    kinds = [result.WhichOneof("result") for result in answer.results]
    assert kinds == ["response", "error", "error", "response", "response", "response"]
    assert [r.response.created for r in answer.results] == [True, False, False, True, False, True]
    assert (answer.created_count, answer.failed_count) == (2, 2)
    [notice] = answer.results[4].response.notices
    assert (notice.code, notice.field) == (outcome_pb2.NOTICE_CODE_FIELDS_UNCHANGED, "memory.tags")
    assert answer.results[1].error.code == grpc.StatusCode.ALREADY_EXISTS.value[0]
    again = await lot.memories.BatchCreateMemories(
        items=[{"memory": {"content": "one"}, "memory_id": "one", "request_id": "r"}]
    )
    assert again.results[0].response.created


async def test_dedupe_of_one_memory_answers_with_what_is_there(lot: Lot) -> None:
    first = await lot.memories.CreateMemory(memory={"content": "x  y"}, dedupe=EXACT)
    again = await lot.memories.CreateMemory(memory={"content": "x y"}, dedupe=EXACT)
    assert (first.created, again.created) == (True, False)
    assert again.memory == first.memory
    other = await lot.memories.CreateMemory(memory={"content": "x y"})
    assert other.created, "unless asked for, each create is a memory of its own"
    by_both = {"memory": {"content": "x"}, "memory_id": "m", "dedupe": EXACT}
    assert list((await failure(lot.memories.CreateMemory(**by_both))).fields) == ["dedupe"]


# --- edits ------------------------------------------------------------------------------------


async def test_an_edit_by_mask_sets_clears_and_leaves(lot: Lot) -> None:
    made = await created(lot, memory_id="m", title="T", tags=["a"], importance=0.9)
    edited = await updated(lot, "m", "tags", "pinned", tags=["b", "c"], pinned=True, title="no")
    assert (list(edited.tags), edited.pinned, edited.title) == (["b", "c"], True, "T")
    assert edited.importance == 0.9
    cleared = await updated(lot, "m", "tags", "title", "importance")
    assert (list(cleared.tags), cleared.title, cleared.importance) == ([], "", 0.5)
    given = await updated(lot, "m", title="by what is set", source_uri="file:x")
    assert (given.title, given.source_uri, given.pinned) == ("by what is set", "file:x", True)
    everything = await updated(lot, "m", "*", content="new")
    assert (everything.content, everything.title, everything.pinned) == ("new", "", False)
    assert everything.create_time == made.create_time
    assert (await lot.memories.GetMemory(memory_id="m")).memory == everything
    hits = (await lot.memories.SearchMemories(query="new")).hits
    assert [hit.memory for hit in hits] == [everything]


async def test_details_and_expiration_are_set_and_cleared_by_the_mask(lot: Lot) -> None:
    await created(lot, memory_id="m", project={"path": "/x", "status": "paused"})
    edited = await updated(lot, "m", "details", project={"path": "/y"})
    assert (edited.project.path, edited.project.status) == ("/y", "active")
    assert edited.kind == P.MEMORY_KIND_PROJECT
    bare = await updated(lot, "m", "details")
    assert bare.WhichOneof("details") is None
    later = datetime(2100, 1, 1, tzinfo=UTC)
    assert (await updated(lot, "m", "expiration", expire_time=later)).HasField("expire_time")
    brief = await updated(lot, "m", "ttl", ttl=timedelta(seconds=9))
    assert brief.expire_time.ToMicroseconds() < later.timestamp() * SECOND
    assert not (await updated(lot, "m", "expiration")).HasField("expire_time")


@pytest.mark.parametrize(
    ("requested", "fields", "reason"),
    [
        ({"memory_id": "none"}, [], "MEMORY_NOT_FOUND"),
        ({"etag": "stale"}, [], "ETAG_MISMATCH"),
        ({"update_mask": {"paths": ["etag"]}}, ["update_mask"], "REQUEST_INVALID"),
        ({"update_mask": {"paths": ["nothing"]}}, ["update_mask"], "REQUEST_INVALID"),
        ({"update_mask": {"paths": ["content"]}}, ["memory.content"], "REQUEST_INVALID"),
        ({"update_mask": {"paths": ["kind"]}}, ["memory.kind"], "REQUEST_INVALID"),
        ({"memory": {"memory_id": "other"}}, ["memory.memory_id"], "REQUEST_INVALID"),
    ],
    ids=str,
)
async def test_an_edit_that_cannot_be_is_refused(
    lot: Lot, requested: Any, fields: list[str], reason: str
) -> None:
    before = await created(lot, memory_id="m", project={"path": "/x"})
    told = await failure(
        lot.memories.UpdateMemory(**{"memory_id": "m", "memory": {"title": "T"}, **requested})
    )
    assert told.reason == reason
    assert not fields or list(told.fields) == fields
    assert (await lot.memories.GetMemory(memory_id="m")).memory == before


# --- lists and deletes ------------------------------------------------------------------------


async def test_a_list_is_paged_and_its_token_belongs_to_its_filter(lot: Lot) -> None:
    for n in range(5):
        await created(lot, memory_id=f"m{n}", pinned=n == 2)
    page = await lot.memories.ListMemories(page_size=3)
    assert [one.memory_id for one in page.memories] == ["m4", "m3", "m2"]
    rest = await lot.memories.ListMemories(page_size=3, page_token=page.next_page_token)
    assert ([one.memory_id for one in rest.memories], rest.next_page_token) == (["m1", "m0"], "")
    other = lot.memories.ListMemories(filter={"pinned": True}, page_token=page.next_page_token)
    assert (await failure(other)).reason == "PAGE_TOKEN_MISMATCH"
    assert await listed(lot, pinned=True) == ["m2"]


async def test_a_filter_deletes_and_tells(lot: Lot) -> None:
    for n in range(4):
        await created(lot, memory_id=f"m{n}", tags=["old"], pinned=n == 0)
    requested = {"filter": {"tags_any": ["old"]}}
    would = await lot.memories.DeleteMemories(**requested, dry_run=True)
    assert (would.deleted_count, list(would.memory_ids)) == (3, ["m1", "m2", "m3"])
    assert len(await listed(lot)) == 4
    assert await lot.memories.DeleteMemories(**requested) == would
    assert await listed(lot) == ["m0"]
    assert list((await failure(lot.memories.DeleteMemories(filter={}))).fields) == ["filter"]
    assert list((await failure(lot.memories.DeleteMemories())).fields) == ["filter"]
    by_pin = {"filter": {"tags_any": ["old"], "pinned": True}}
    assert (await lot.memories.DeleteMemories(**by_pin)).deleted_count == 1


# --- any text anywhere ------------------------------------------------------------------------


async def test_strange_values_are_stored_and_filtered_as_they_stand(lot: Lot) -> None:
    for n, value in enumerate(STRANGE):
        made = await created(
            lot,
            f"fact {value}",
            memory_id=f"m{n}",
            title=value,
            tags=[value],
            labels={"a.b/c_d-e": value},
            source_uri=value,
            metadata={value: {"in": [value]}},
            project={"path": value, "tech_stack": [value], "status": value},
        )
        assert (made.title, list(made.tags), made.source_uri) == (value, [value], value)
        assert made.metadata[value]["in"][0] == value
    for n, value in enumerate(STRANGE):
        for requested in (
            {"tags_any": [value]},
            {"tags_all": [value]},
            {"labels": {"a.b/c_d-e": value}},
            {"source_uris": [value]},
            {"project_statuses": [value]},
            {"tech_stack": [value]},
        ):
            assert await listed(lot, **requested) == [f"m{n}"], requested
        hits = await lot.memories.SearchMemories(query="fact", filter={"tags_any": [value]})
        assert [hit.memory.memory_id for hit in hits.hits] == [f"m{n}"]
        gone = await lot.memories.DeleteMemories(filter={"tags_any": [value]}, dry_run=True)
        assert list(gone.memory_ids) == [f"m{n}"]


async def test_a_long_content_of_any_script_comes_back_with_its_passage(lot: Lot) -> None:
    parts = ["今天的天气很好,我们去公园散步。" * 20, "مرحبا بالعالم. " * 60, "🙂👩‍🚀 " * 150]
    content = "\n\n".join([*parts, "The kettle of Lisbon whistles in B flat.", *parts])
    await created(lot, content, memory_id="m")
    [hit] = (await lot.memories.SearchMemories(query="how does the kettle of Lisbon whistle")).hits
    passage = hit.passage
    assert passage.text == content[passage.start_offset : passage.end_offset]
    assert "kettle" in passage.text
    assert hit.memory.content == content
    await created(lot, "short", memory_id="short")
    hits = (await lot.memories.SearchMemories(query="short")).hits
    assert not next(hit for hit in hits if hit.memory.memory_id == "short").HasField("passage")
