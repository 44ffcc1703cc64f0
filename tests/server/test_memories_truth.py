"""Superseding, validity and conflicts of memories on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from lot_grpc.pb.lot.v1 import memory_service_pb2, outcome_pb2, pattern_service_pb2
from tests.server.service import Lot
from tests.server.wire import failure

FACT = "The staging database runs on Postgres {}"
NOW = datetime.fromtimestamp(1_700_000_000, UTC)
"""The time of the server, whose clock stands still."""
HOUR = timedelta(hours=1)
NOTICE = outcome_pb2.NOTICE_CODE_CONFLICTS_WITH


async def create(lot: Lot, memory_id: str, content: str = "", **fields: Any) -> Any:
    memory = {"content": content or f"fact {memory_id}", **fields}
    return await lot.memories.CreateMemory(memory=memory, memory_id=memory_id)


async def found(lot: Lot, query: str = "fact", **requested: Any) -> set[str]:
    answer = await lot.memories.SearchMemories(query=query, limit=100, **requested)
    return {hit.memory.memory_id for hit in answer.hits}


async def test_a_correction_hides_what_it_replaces_and_keeps_it(lot):
    old = (await create(lot, "a", valid_from=NOW - HOUR)).memory
    new = (await create(lot, "b", supersedes="a")).memory
    assert await found(lot) == {"b"}
    assert await found(lot, filter={"superseded": True}) == {"a"}
    assert await found(lot, as_of=NOW - HOUR) == {"a"}
    replaced = (await lot.memories.GetMemory(memory_id="a")).memory
    assert (replaced.superseded_by, replaced.superseded_time) == ("b", new.create_time)
    assert replaced.etag == old.etag
    for superseded, expected in ((True, {"a"}), (False, {"b"}), (None, {"a", "b"})):
        narrowed = {} if superseded is None else {"superseded": superseded}
        listed = await lot.memories.ListMemories(filter=narrowed)
        assert {one.memory_id for one in listed.memories} == expected


async def test_lineage_comes_with_a_memory_on_request(lot):
    await create(lot, "a")
    await create(lot, "b", supersedes="a")
    await create(lot, "c", supersedes="b")
    answer = await lot.memories.GetMemory(memory_id="b", include_lineage=True)
    assert [(one.relation, one.memory.memory_id, one.distance) for one in answer.lineage] == [
        (pattern_service_pb2.LINEAGE_RELATION_SUPERSEDED, "a", 1),
        (pattern_service_pb2.LINEAGE_RELATION_SUCCESSOR, "c", 1),
    ]
    assert not (await lot.memories.GetMemory(memory_id="b")).lineage


async def test_recall_is_of_now_or_of_another_time(lot):
    await create(lot, "past", valid_from=NOW - 3 * HOUR, valid_until=NOW - HOUR)
    await create(lot, "now", valid_from=NOW - HOUR)
    await create(lot, "soon", valid_from=NOW + HOUR)
    assert await found(lot) == {"now"}
    assert await found(lot, as_of=NOW - 2 * HOUR) == {"past"}
    assert await found(lot, as_of=NOW + 2 * HOUR) == {"now", "soon"}
    explained = await lot.memories.SearchMemories(query="fact", explain=True)
    assert [(one.field, one.excluded_count) for one in explained.explanation.filters] == [
        ("reviews", 0),
        ("as_of", 2),
    ]


async def test_an_end_may_be_set_and_unset(lot):
    await create(lot, "a", valid_from=NOW - 2 * HOUR)
    update = lot.memories.UpdateMemory
    ended = {"valid_until": NOW - HOUR}
    await update(memory_id="a", memory=ended)
    assert await found(lot) == set()
    await update(memory_id="a", memory={}, update_mask={"paths": ["valid_until"]})
    assert await found(lot) == {"a"}


@pytest.mark.parametrize(
    ("fields", "violation"),
    [
        ({"supersedes": "m"}, {"memory.supersedes": "supersedes.itself"}),
        ({"supersedes": "b"}, {"memory.supersedes": "supersedes.circle"}),
        ({"supersedes": "c"}, {"memory.supersedes": "supersedes.circle"}),
        ({"supersedes": "-"}, {"memory.supersedes": "string.pattern"}),
        (
            {"valid_from": NOW, "valid_until": NOW},
            {"memory.valid_until": "memory.valid_until.order"},
        ),
        ({"valid_until": NOW - HOUR}, {"memory.valid_until": "memory.valid_until.order"}),
        (
            {"valid_from": Timestamp(seconds=2**40)},
            {"memory.valid_from": "timestamp.range"},
        ),
    ],
)
async def test_bad_values_are_refused_with_a_reason(lot, fields, violation):
    await create(lot, "m")
    await create(lot, "b", supersedes="m")
    await create(lot, "c", supersedes="b")
    failed = await failure(lot.memories.UpdateMemory(memory_id="m", memory=fields))
    assert (failed.reason, failed.fields) == ("REQUEST_INVALID", violation)


async def test_what_is_to_be_superseded_must_be_there(lot):
    failed = await failure(create(lot, "a", supersedes="none"))
    assert failed.reason == "MEMORY_NOT_FOUND"
    assert "must name an existing memory" in failed.message
    assert await found(lot) == set()


async def test_a_contradiction_is_noticed_and_both_are_kept(lot):
    first = await create(lot, "old", FACT.format(14))
    assert not first.conflicting_memory_ids
    second = await create(lot, "new", FACT.format(16))
    assert list(second.conflicting_memory_ids) == ["old"]
    [notice] = second.notices
    assert (notice.code, notice.field) == (NOTICE, "memory.content")
    assert "old ('14' there, '16' here)" in notice.message
    assert "set supersedes" in notice.message
    assert await found(lot, "staging database") == {"old", "new"}


async def test_a_repeat_of_a_request_names_the_conflicts_again(lot):
    await create(lot, "old", FACT.format(14))
    request = {"memory": {"content": FACT.format(16)}, "request_id": "r"}
    first = await lot.memories.CreateMemory(**request)
    assert list(first.conflicting_memory_ids) == ["old"]
    assert await lot.memories.CreateMemory(**request) == first


async def test_what_it_supersedes_is_no_conflict(lot):
    await create(lot, "old", FACT.format(14))
    assert not (await create(lot, "new", FACT.format(16), supersedes="old")).notices
    assert not (
        await create(lot, "next", FACT.format(17), supersedes="new", valid_from=NOW + HOUR)
    ).notices


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"valid_from": NOW - 2 * HOUR, "valid_until": NOW - HOUR}, {}),
        ({}, {"valid_from": NOW - 2 * HOUR, "valid_until": NOW - HOUR}),
        ({"labels": {"project": "a"}}, {"labels": {"project": "b"}}),
        ({"kind": "MEMORY_KIND_CODE_SNIPPET"}, {}),
        ({}, {"language": "python"}),
    ],
)
async def test_what_is_of_another_time_or_thing_is_no_conflict(lot, old, new):
    await create(lot, "old", FACT.format(14), **old)
    assert not (await create(lot, "new", FACT.format(16), **new)).conflicting_memory_ids


async def test_an_edit_of_the_text_is_compared_and_one_of_the_rest_is_not(lot):
    await create(lot, "old", FACT.format(14))
    await create(lot, "other", "The release train leaves on Tuesdays")
    update = lot.memories.UpdateMemory
    edited = await update(memory_id="other", memory={"content": FACT.format(16)})
    assert list(edited.conflicting_memory_ids) == ["old"]
    assert [one.code for one in edited.notices] == [NOTICE]
    tagged = await update(memory_id="other", memory={"tags": ["t"]})
    assert (list(tagged.conflicting_memory_ids), list(tagged.notices)) == ([], [])


async def test_items_of_a_batch_are_compared_with_each_other_too(lot):
    await create(lot, "old", FACT.format(13))
    items = [{"memory": {"content": FACT.format(n)}, "memory_id": f"m{n}"} for n in (14, 15)]
    answer = await lot.memories.BatchCreateMemories(items=items)
    conflicts = [set(one.response.conflicting_memory_ids) for one in answer.results]
    assert conflicts == [{"old", "m15"}, {"old", "m14"}]


async def test_another_namespace_is_no_conflict(lot):
    await create(lot.on(f"{lot.namespace}-other"), "old", FACT.format(14))
    assert not (await create(lot, "new", FACT.format(16))).conflicting_memory_ids


async def test_a_lineage_that_is_too_large_is_cut_with_a_notice(lot):
    await create(lot, "m0", "x" * 2**20)
    for n in range(1, 5):
        await create(lot, f"m{n}", "x" * 2**20, supersedes=f"m{n - 1}")
    answer = await lot.memories.GetMemory(memory_id="m4", include_lineage=True)
    assert isinstance(answer, memory_service_pb2.GetMemoryResponse)
    assert answer.ByteSize() < 4 * 2**20
    assert [one.code for one in answer.notices] == [outcome_pb2.NOTICE_CODE_RESPONSE_TRUNCATED]
    assert len(answer.lineage) == 4
