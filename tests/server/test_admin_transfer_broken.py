"""Records of an import that lack what the server writes, or have names that no call accepts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from tests.server.service import Lot
from tests.server.transfers import exported, fill, imported, records_of
from tests.server.wire import failure

COUNTED = {"memories", "patterns", "episodes", "error_solutions"}
OWN = ("origin_name", "supersedes")
NAMES = {
    "memory": ("memory_id", *OWN),
    "pattern": ("pattern_id", "parent_pattern_id", *OWN),
    "error_solution": ("error_solution_id", "origin_name"),
    "episode": ("episode_id",),
    "preference": ("key",),
}
"""The names of a record that a context shows, or that name others."""
REQUIRED = {"sort_key", "epoch"}


def row_of(record: pb.ExportRecord) -> tuple[str, dict[str, Any]]:
    """The collection of a record, and what is stored of it."""
    form = record.stored_form.fields
    return form["of"].string_value, json.loads(form["row"].string_value)


def with_row(record: pb.ExportRecord, row: dict[str, Any]) -> pb.ExportRecord:
    copy = pb.ExportRecord()
    copy.CopyFrom(record)
    copy.stored_form["row"] = json.dumps(row)
    return copy


async def refused(
    lot: Lot, messages: Sequence[pb.ExportResponse], record: pb.ExportRecord, version: str = ""
) -> Any:
    header = pb.ExportHeader()
    header.CopyFrom(messages[0].header)
    header.server_version = version or header.server_version
    request = pb.ImportRequest(namespace=lot.namespace, header=header, records=[record])
    failed = await failure(lot.admin.Import(iter([request]), timeout=30).read())
    assert failed.reason == "REQUEST_INVALID"
    return failed


async def test_counters_that_an_older_version_did_not_write_are_filled_in(lot: Lot):
    await fill(lot)
    messages = await exported(lot)
    for record in records_of(messages):
        of, row = row_of(record)
        if of in COUNTED:
            del row["pending_ids"], row["stats_revision"]
            record.stored_form["row"] = json.dumps(row)
    other = lot.on(f"{lot.namespace}-other")
    await imported(other, messages)
    used: dict[str, Any] = {"pattern_ids": ["q"], "memory_ids": ["m"], "episode_ids": ["e"]}
    await other.patterns.RecordOutcome(**used, error_solution_ids=["s"], outcome=1, query="how")
    assert (await other.memories.GetMemory(memory_id="m")).memory.outcomes.usage_count == 1
    assert (await other.episodes.GetEpisode(episode_id="e")).episode.outcomes.usage_count == 1
    assert (await other.patterns.GetPattern(pattern_id="q")).pattern.outcomes.usage_count == 4


async def test_a_record_without_its_place_in_lists_is_refused(lot: Lot):
    await fill(lot)
    messages = await exported(lot)
    other = lot.on(f"{lot.namespace}-other")
    tried = set()
    for record in records_of(messages):
        of, row = row_of(record)
        for key in REQUIRED & row.keys() - {of}:
            if (of, key) not in tried and of != "preference_revisions":
                less = {name: value for name, value in row.items() if name != key}
                failed = await refused(other, messages, with_row(record, less))
                assert failed.fields == {"records[0].stored_form.row": "record.whole"}
                assert f"lacks {key}; import it as exported" in failed.message
                tried.add((of, key))
    assert {key for _, key in tried} == REQUIRED
    assert records_of(await exported(other)) == []


@pytest.mark.parametrize("bad", ["x\n## Rules", "a\u202eb", "a\U000e0041", " a"])
async def test_a_name_that_no_call_accepts_is_refused(lot: Lot, bad: str):
    """They are shown in the text of a context, where a line of their own would be a heading."""
    await fill(lot)
    messages = await exported(lot)
    other = lot.on(f"{lot.namespace}-other")
    tried = set()
    for record in records_of(messages):
        of, row = row_of(record)
        kind = record.WhichOneof("record") or ""
        for name in NAMES.get(kind, ()):
            if (of, name) in tried or (name == "supersedes" and name not in row):
                continue
            forged = with_row(record, {**row, name: bad})
            getattr(forged, kind).Clear()  # an older server may have left out what it did not know
            getattr(forged, kind).SetInParent()
            failed = await refused(other, messages, forged, version="0.1")
            [field] = failed.fields
            assert field.startswith(f"records[0].{kind}."), (field, name)
            assert "rename it where it was exported" in failed.message
            tried.add((of, name))
    assert {name for _, name in tried} == {name for names in NAMES.values() for name in names}
    assert records_of(await exported(other)) == []
