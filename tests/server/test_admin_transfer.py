"""Export and import on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from lot_grpc.server.tokens import decode, encode
from tests.server.service import Lot, serving
from tests.server.transfers import (
    COUNTS,
    bare,
    exported,
    fill,
    imported,
    placeless,
    records_of,
)
from tests.server.wire import failure


def told(messages: Sequence[pb.ExportResponse]) -> dict[str, int]:
    return dict(messages[-1].summary.record_counts)


async def test_what_was_imported_is_exported_just_so(lot: Lot):
    await fill(lot)
    messages = await exported(lot)
    assert messages[0].header.format_version == 1
    assert told(messages) == COUNTS
    other = lot.on(f"{lot.namespace}-other")
    ack = await imported(other, messages)
    assert dict(ack.imported_counts) == COUNTS
    assert (ack.imported_count, ack.unchanged_count) == (len(records_of(messages)), 0)
    assert ack.skipped_count == 0
    assert bare(await exported(other)) == bare(messages)
    again = await imported(other, messages)
    assert (again.imported_count, again.skipped_count) == (0, 0)
    assert again.unchanged_count == ack.imported_count
    assert bare(await exported(lot)) == bare(messages)  # nothing crosses


async def _policy(lot: Lot) -> Any:
    """Without the usage: selections and what is pending are not exported, and have bytes."""
    return (await lot.admin.GetNamespacePolicy()).policy


async def test_what_was_imported_reads_as_it_did(lot: Lot):
    await fill(lot)
    other = lot.on(f"{lot.namespace}-other")
    await imported(other, await exported(lot))
    for one, ask in {
        "patterns": lambda lot: lot.patterns.ListPatterns(page_size=50),
        "events": lambda lot: lot.episodes.ListEpisodeEvents(episode_id="e"),
        "episodes": lambda lot: lot.episodes.ListEpisodes(),
        "entries": lambda lot: lot.patterns.ListOutcomes(pattern_id="p"),
        "history": lambda lot: lot.memories.GetPreference(key="theme", history_limit=9),
        "session": lambda lot: lot.memories.GetSession(session_id="c"),
        "decisions": lambda lot: lot.learning.ListDecisions(),
        "policy": _policy,
        "best": lambda lot: lot.learning.ListActionValues(state={"task_type": "t"}),
        "solutions": lambda lot: lot.memories.ListErrorSolutions(),
    }.items():
        assert placeless(await ask(lot)) == placeless(await ask(other)), one
    recalled = await other.patterns.RecallPatterns(query="how to deploy", min_similarity=0.2)
    before = await lot.patterns.RecallPatterns(query="how to deploy", min_similarity=0.2)
    assert {hit.pattern.pattern_id for hit in recalled.hits} == {
        hit.pattern.pattern_id for hit in before.hits
    }
    assert [hit.score for hit in recalled.hits] == pytest.approx([hit.score for hit in before.hits])


async def test_an_import_into_the_same_namespace_keeps_the_etags(lot: Lot):
    await fill(lot)
    messages = await exported(lot)
    await lot.admin.ClearNamespace(confirm_namespace=lot.namespace)
    await imported(lot, messages)
    assert records_of(await exported(lot)) == records_of(messages)


async def test_a_pattern_that_is_saved_again_after_the_import_meets_the_imported_one(lot: Lot):
    await fill(lot)
    other = lot.on(f"{lot.namespace}-other")
    await imported(other, await exported(lot))
    content = {"task": "log in to site 1", "code": "def login_form(): ..."}
    there = await lot.patterns.SavePattern(pattern=content)
    here = await other.patterns.SavePattern(pattern=content)
    assert not here.created
    assert here.pattern.pattern_id == there.pattern.pattern_id
    by_id = await other.patterns.SavePattern(pattern={"task": "deploy the site"})
    assert by_id.created  # one with an id of its caller holds no claim


async def test_an_export_goes_on_behind_any_cursor(lot: Lot):
    await fill(lot)
    await lot.episodes.RecordEpisode(
        episode={"task": "long", "status": "EPISODE_STATUS_FAILED"},
        episode_id="long",
        events=[{"event_type": "step", "data": {"text": "x" * 3000}} for _ in range(450)],
    )
    messages = await exported(lot)
    cursors = [message.cursor for message in messages if message.records]
    assert len(cursors) > 5
    for place, cursor in enumerate(cursors):
        rest = await exported(lot, after_cursor=cursor)
        assert rest[0].HasField("header")
        assert [one.records for one in rest if one.records] == [
            one.records for one in messages[place + 2 :] if one.records
        ]


async def test_a_cursor_belongs_to_its_export(lot: Lot):
    await fill(lot)
    cursor = (await exported(lot))[-1].cursor
    assert [one for one in await exported(lot, after_cursor=cursor) if one.records] == []
    failed = await failure(lot.admin.Export(after_cursor=cursor, include_vectors=True).read())
    assert failed.fields == {"after_cursor": "cursor.other_export"}
    for broken in ("x", cursor[:-9], "é", "W10"):
        failed = await failure(lot.admin.Export(after_cursor=broken).read())
        assert failed.fields == {"after_cursor": "cursor.damaged"}


@pytest.mark.parametrize("inner", ["v", "w1", "٣", "-1", "1" * 17, "x"])
async def test_a_cursor_that_was_edited_is_damaged(lot: Lot, inner: str):
    for number in (1, 2):
        await lot.memories.PutPreference(key="p", value={"number_value": number})
    kinds = [resource_kind_pb2.RESOURCE_KIND_PREFERENCE]
    parts = decode((await exported(lot, resource_kinds=kinds))[-1].cursor)
    assert parts[3] == "preference_revisions"
    edited = encode([*parts[:-1], inner])
    failed = await failure(lot.admin.Export(after_cursor=edited, resource_kinds=kinds).read())
    assert failed.fields == {"after_cursor": "cursor.damaged"}


async def test_a_dry_run_counts_and_gives_nothing(lot: Lot):
    await fill(lot)
    messages = await exported(lot, dry_run=True)
    assert records_of(messages) == []
    assert told(messages) == COUNTS


async def test_just_some_kinds(lot: Lot):
    await fill(lot)
    wanted = [resource_kind_pb2.RESOURCE_KIND_MEMORY, resource_kind_pb2.RESOURCE_KIND_EPISODE]
    messages = await exported(lot, resource_kinds=wanted)
    assert told(messages) == {"MEMORY": 2, "EPISODE": 2}


async def test_all_namespaces_keep_theirs(lot: Lot):
    await lot.memories.CreateMemory(memory={"content": "here"}, memory_id="m")
    there = lot.on(f"{lot.namespace}-there")
    await there.memories.CreateMemory(memory={"content": "there"}, memory_id="m")
    messages = await exported(lot, all_namespaces=True)
    async with serving() as empty:
        await imported(empty, messages, namespace="", keep_namespaces=True)
        for one in (lot, there):
            got = await empty.on(one.namespace).memories.GetMemory(memory_id="m")
            assert got == await one.memories.GetMemory(memory_id="m")
        assert told(await exported(empty.on("default"))) == {}
