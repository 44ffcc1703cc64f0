"""Marks of what is superseded: after imports, and where ids are used again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from tests.server.service import Lot
from tests.server.test_admin_reviews import APPROVED, KINDS, PENDING, REJECTED, recalled, store
from tests.server.transfers import exported, imported, records_of

SKIP = pb.IMPORT_CONFLICT_POLICY_SKIP
OVERWRITE = pb.IMPORT_CONFLICT_POLICY_OVERWRITE
each = pytest.mark.parametrize("kind", ["memory", "pattern"])
held = pytest.mark.parametrize("state", [PENDING, REJECTED])


async def old_and_new(lot: Lot, kind: str) -> None:
    """``old``, which ``new`` supersedes."""
    await store(lot, kind, "old")
    await store(lot, kind, "new", supersedes="old")


async def review(lot: Lot, kind: str, state: int, *ids: str) -> Any:
    items = [{"id": one} for one in ids]
    return await lot.admin.ReviewRecords(resource_kind=KINDS[kind], items=items, state=state)


async def get(lot: Lot, kind: str, record_id: str) -> Any:
    if kind == "memory":
        return (await lot.memories.GetMemory(memory_id=record_id)).memory
    return (await lot.patterns.GetPattern(pattern_id=record_id)).pattern


def only(messages: Sequence[pb.ExportResponse], kind: str, record_id: str) -> Any:
    for message in messages:
        kept = [
            one for one in message.records
            if getattr(getattr(one, kind), f"{kind}_id") == record_id
        ]  # fmt: skip
        del message.records[:]
        message.records.extend(kept)
    assert len(records_of(messages)) == 1
    return messages


@each
@held
async def test_a_held_back_successor_that_is_there_hides_nothing_that_comes(lot, kind, state):
    await old_and_new(lot, kind)
    messages = await exported(lot)
    other = lot.on(f"{lot.namespace}-other")
    await old_and_new(other, kind)
    await review(other, kind, state, "new")
    delete = other.memories.DeleteMemory if kind == "memory" else other.patterns.DeletePattern
    await delete(**{f"{kind}_id": "old"})
    await imported(other, messages, conflict_policy=SKIP)
    assert (await get(other, kind, "old")).superseded_by == ""
    assert await recalled(other, kind) == ["old"]
    await review(other, kind, APPROVED, "new")
    assert (await get(other, kind, "old")).superseded_by == "new"


@each
@held
async def test_a_held_back_successor_that_comes_hides_nothing_that_is_there(lot, kind, state):
    await old_and_new(lot, kind)
    await review(lot, kind, state, "new")
    messages = only(await exported(lot), kind, "new")
    other = lot.on(f"{lot.namespace}-other")
    await old_and_new(other, kind)
    await imported(other, messages, conflict_policy=OVERWRITE)
    assert (await get(other, kind, "old")).superseded_by == ""
    assert await recalled(other, kind) == ["old"]


@each
async def test_a_mark_waits_for_a_successor_that_comes_later(lot, kind):
    await old_and_new(lot, kind)
    await store(lot, kind, "newest", supersedes="old")
    messages = await exported(lot)
    other = lot.on(f"{lot.namespace}-other")
    for record in records_of(messages):
        one = pb.ExportResponse(records=[record])
        await imported(other, [messages[0], one])
    assert (await get(other, kind, "old")).superseded_by == "newest"
    assert sorted(await recalled(other, kind)) == ["new", "newest"]
    ack = await imported(other, messages)
    assert ack.imported_count == 0


@each
async def test_an_import_closes_no_circle(lot, kind):
    """Both would be hidden, and a review of either would be refused."""
    await old_and_new(lot, kind)
    other, third = lot.on(f"{lot.namespace}-other"), lot.on(f"{lot.namespace}-third")
    await store(other, kind, "new")
    await store(other, kind, "old", supersedes="new")
    await imported(third, await exported(lot))
    await imported(third, only(await exported(other), kind, "old"), conflict_policy=OVERWRITE)
    assert await recalled(third, kind) == ["new"]
    old, new = [await get(third, kind, one) for one in ("old", "new")]
    assert (old.supersedes, old.superseded_by) == ("", "new")
    assert (new.supersedes, new.superseded_by) == ("old", "")


# --- ids of expired successors that are used again --------------------------------------------


async def expiring(lot: Lot, kind: str) -> None:
    """``old``, and ``new``, which supersedes it and has expired, but is not swept yet."""
    await store(lot, kind, "old")
    await store(lot, kind, "new", supersedes="old", ttl={"seconds": 60})
    lot.clock.advance(61)


async def _saved(lot: Lot, kind: str) -> None:
    await store(lot, kind, "new")


async def _saved_as_another_successor(lot: Lot, kind: str) -> None:
    await store(lot, kind, "older")
    await store(lot, kind, "new", supersedes="older")


async def _imported(lot: Lot, kind: str) -> None:
    other = lot.on(f"{lot.namespace}-other")
    await store(other, kind, "new")
    await imported(lot, await exported(other))


@each
@pytest.mark.parametrize("again", [_saved, _saved_as_another_successor, _imported])
async def test_what_an_expired_successor_hid_is_found_though_its_id_is_used_again(lot, kind, again):
    await expiring(lot, kind)
    await again(lot, kind)
    old = await get(lot, kind, "old")
    assert old.superseded_by == ""
    assert sorted(await recalled(lot, kind)) == ["new", "old"]
