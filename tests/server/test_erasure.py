"""What was deleted is in no byte of the data folder once it is compacted."""

from __future__ import annotations

import asyncio
import base64
import secrets
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.ports import MultiVector, SparseVector
from lot_grpc.services.resources import REGISTRY
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.edge_maintenance import compact_folder
from lot_grpc.testing.hashing import HashingEmbedder
from tests.contract.clock import FixedClock
from tests.remains import files_by_name
from tests.server.examples import EXAMPLES, prepare
from tests.server.marking import WRITES, call, in_order, marked
from tests.server.service import Lot, serving
from tests.server.test_admin_erasing import store, use_of_others

COLLECTIONS = [*REGISTRY.resource_collections, *REGISTRY.bookkeeping]


@asynccontextmanager
async def on_disk(folder: Path) -> AsyncIterator[Lot]:
    clock = FixedClock()
    store = EdgeStore(folder, clock, min_free_bytes=0)
    async with serving(store, HashingEmbedder(16), clock=clock) as lot:
        yield lot


def new_marker() -> str:
    """A text that no other has, too random to be shortened by compression."""
    return f"mk{secrets.token_hex(16)}"


async def vectors(lot: Lot, marker: str) -> set[bytes]:
    """The vectors of the records that contain the marker, as bytes."""
    assert lot.own_services is not None
    await lot.own_services.runtime.retrievals.flush()
    found: set[bytes] = set()
    for name in COLLECTIONS:
        for record in await lot.own_services.runtime.store.scroll(
            name, lot.namespace, [], limit=1000, vectors=True
        ):
            if marker not in str(record.payload):
                continue
            for vector in record.vectors.values():
                found |= {struct.pack(f"<{len(one)}f", *one) for one in _dense(vector)}
            if stored := record.payload.get("vector"):
                found |= {stored.encode(), base64.b64decode(stored)}
    return found


def _dense(vector: Any) -> list[Any]:
    if isinstance(vector, SparseVector):
        return []
    return list(vector.vectors) if isinstance(vector, MultiVector) else [vector]


_BY_PARTS = ("AdminService.Import", "EpisodeService.RecordEvents")
"""One message is not enough for these; what they store, other calls store too."""


async def write_everything(lot: Lot, marker: str) -> None:
    """Make every call, the writing ones with the marker, and delete nothing."""
    await prepare(lot)
    for name in in_order(list(EXAMPLES)):
        if name.partition(".")[2].startswith(("Delete", "Clear", "Prune", "Reindex", "Compact")):
            continue
        request, _ = marked(name, lot.namespace, marker)
        if "request_id" in request.DESCRIPTOR.fields_by_name:
            request.request_id = f"of-{name}"
        code = await call(lot, name, request)
        assert code == "OK" or name in ("AdminService.Import", "EpisodeService.RecordEvents"), (
            lot.log[-1]
        )


# --- deletes one by one ---------------------------------------------------------------------------

Deleting = Callable[[Lot, str], Awaitable[None]]


async def _memory(lot: Lot, marker: str) -> None:
    given = {"title": marker, "content": f"about {marker}", "metadata": {"k": marker}}
    await lot.memories.CreateMemory(memory=given, memory_id="mine", request_id="r1")
    await lot.memories.CreateMemory(memory={"content": marker}, memory_id="long")
    used = {"memory_ids": ["mine"], "outcome": outcome_pb2.OUTCOME_SUCCESS}
    await lot.patterns.RecordOutcome(query=f"how {marker}", note=marker, request_id="r2", **used)
    await lot.memories.DeleteMemory(memory_id="mine")
    await lot.memories.DeleteMemory(memory_id="long")


async def _memories(lot: Lot, marker: str) -> None:
    items = [{"memory": {"content": f"{n} {marker}", "tags": [marker]}} for n in range(3)]
    await lot.memories.BatchCreateMemories(items=items)
    deleted = await lot.memories.DeleteMemories(filter={"tags_any": [marker]})
    assert deleted.deleted_count == 3


async def _edited_memory(lot: Lot, marker: str) -> None:
    await lot.memories.CreateMemory(memory={"content": marker, "title": marker}, memory_id="mine")
    await lot.memories.UpdateMemory(memory_id="mine", memory={"content": "other", "title": "other"})


async def _pattern(lot: Lot, marker: str) -> None:
    given = {"task": marker, "code": f"x = '{marker}'", "actions": [{"tool": "t", "note": marker}]}
    await lot.patterns.SavePattern(pattern=given, pattern_id="mine", request_id="r1")
    used = {"pattern_ids": ["mine"], "outcome": outcome_pb2.OUTCOME_SUCCESS}
    await lot.patterns.RecordOutcome(query=f"how {marker}", note=marker, request_id="r2", **used)
    await lot.patterns.RecordPatternFeedback(
        pattern_id="mine", helpful=True, text=marker, request_id="r3"
    )
    await lot.patterns.DeletePattern(pattern_id="mine")


async def _episode(lot: Lot, marker: str) -> None:
    given = {"task": marker, "context": marker, "metadata": {"k": marker}}
    await lot.episodes.StartEpisode(episode=given, episode_id="mine", request_id="r1")
    event = {"event_type": "x", "data": {"text": marker}}
    await lot.episodes.RecordEvent(episode_id="mine", event=event)
    await lot.episodes.EndEpisode(episode_id="mine", status=2, summary=marker, request_id="r2")
    await lot.episodes.DeleteEpisode(episode_id="mine")


async def _error_solution(lot: Lot, marker: str) -> None:
    given = {"error_message": f"KeyError: {marker}", "resolution": marker}
    await lot.memories.SaveErrorSolution(
        error_solution=given, error_solution_id="mine", request_id="r1"
    )
    await lot.memories.RecordErrorSolutionOutcome(
        error_solution_id="mine", outcome=1, note=marker, error_message=marker, request_id="r2"
    )
    await lot.memories.DeleteErrorSolution(error_solution_id="mine")


async def _preference(lot: Lot, marker: str) -> None:
    for n in range(3):
        await lot.memories.PutPreference(
            key="k", value={"string_value": f"{n} {marker}"}, request_id=f"r{n}"
        )
    await lot.memories.DeletePreference(key="k")


async def _session(lot: Lot, marker: str) -> None:
    value = {"string_value": marker}
    await lot.memories.PutSessionValue(session_id="s", key="k", value=value)
    for n in range(3):
        await lot.memories.AppendSessionMessage(
            session_id="s", message={"role": "user", "content": marker}, request_id=f"m{n}"
        )
    await lot.memories.ClearSession(session_id="s")


async def _decision(lot: Lot, marker: str) -> None:
    given = {"context": marker, "chosen_option": "o", "reasoning": marker}
    await lot.learning.RecordDecision(decision=given, decision_id="mine", request_id="r1")
    await lot.learning.RecordDecisionOutcome(
        decision_id="mine", outcome=1, note=marker, request_id="r2"
    )
    await lot.learning.DeleteDecision(decision_id="mine")


async def _learning_event(lot: Lot, marker: str) -> None:
    given = {"event_type": "x", "text": marker, "task": marker}
    await lot.learning.RecordLearningEvent(
        learning_event=given, learning_event_id="mine", request_id="r1"
    )
    await lot.learning.DeleteLearningEvent(learning_event_id="mine")


async def _expired(lot: Lot, marker: str) -> None:
    await lot.memories.CreateMemory(
        memory={"content": marker, "ttl": {"seconds": 60}},
        memory_id="mine",
        request_id="r1",
    )
    assert lot.own_services is not None
    lot.clock.advance(3600)
    await lot.own_services.housekeeping.sweep(lambda *swept: None)


async def _retained(lot: Lot, marker: str) -> None:
    for n in range(3):
        await lot.memories.CreateMemory(memory={"content": f"{n} {marker}", "importance": 0.1})
    await lot.memories.CreateMemory(memory={"content": "stays", "importance": 0.9})
    await lot.admin.UpdateNamespacePolicy(policy={"max_memories": 1})
    assert lot.own_services is not None
    await lot.own_services.housekeeping.sweep(lambda *swept: None)


async def _subject(lot: Lot, marker: str) -> None:
    await store(lot, "alice", marker)
    await use_of_others(lot, marker)
    await store(lot, "bob", "his text")
    await lot.admin.EraseSubject(subject="alice")


DELETES = {
    one.__name__.removeprefix("_"): one
    for one in (
        _expired, _retained, # first, since a sweep might delete what another one left
        _memory, _memories, _edited_memory, _pattern, _episode, _error_solution, _preference,
        _session, _decision, _learning_event, _subject,
    )
}  # fmt: skip

# --- what is left of them -------------------------------------------------------------------------

CLEARED = "cleared"


@dataclass(frozen=True)
class Compacted:
    """A folder in which all was deleted in some way, then compacted; the marker of each way."""

    folder: Path
    markers: Mapping[str, str]
    before: Mapping[str, Sequence[str]]
    """The files with each marker before the compaction."""
    traces: set[bytes]
    """The vectors of what was in the cleared namespace."""

    @cached_property
    def after(self) -> dict[str, list[str]]:
        """The files with each marker, and with what else the cleared namespace is known by."""
        return files_by_name(
            self.folder,
            {
                **{name: [marker.encode()] for name, marker in self.markers.items()},
                "vectors": self.traces,
                "encoded": _encoded(self.markers[CLEARED]),
                "his": [b"his text"],
            },
        )


def _encoded(marker: str) -> list[bytes]:
    """The marker in base64, at any offset, and in UTF-16."""
    shifted = (b"x" * shift + marker.encode() for shift in range(3))
    return [marker.encode("utf-16-le"), *(base64.b64encode(one)[4:-4] for one in shifted)]


@pytest.fixture(scope="module")
def compacted(module_path: Path) -> Compacted:
    """One folder for all ways, each in a namespace of its own: compacting it takes long."""
    return asyncio.run(_compacted(module_path / "data"))


async def _compacted(folder: Path) -> Compacted:
    markers = {name: new_marker() for name in [*DELETES, CLEARED]}
    async with on_disk(folder) as lot:
        for name, delete in DELETES.items():
            await delete(lot.on(f"ns-{name}"), markers[name])
        cleared = lot.on(f"ns-{CLEARED}")
        await write_everything(cleared, markers[CLEARED])
        await lot.on("another").memories.CreateMemory(memory={"content": "stays"}, memory_id="x")
        traces = await vectors(cleared, markers[CLEARED])
    looked_for = {name: [marker.encode()] for name, marker in markers.items()}
    before = files_by_name(folder, looked_for)
    async with on_disk(folder) as lot:
        assert cleared.namespace in await _namespaces(lot)
        await lot.admin.ClearNamespace(
            namespace=cleared.namespace, confirm_namespace=cleared.namespace
        )
        assert cleared.namespace not in await _namespaces(lot)
    assert all(not done.skipped for done in compact_folder(folder))
    return Compacted(folder, markers, before, traces)


async def _namespaces(lot: Lot) -> list[str]:
    return [one.namespace for one in (await lot.admin.ListNamespaces()).namespaces]


async def test_a_cleared_namespace_leaves_no_byte(compacted: Compacted) -> None:
    assert len(compacted.traces) >= 3
    before = {one.partition("/")[0] for one in compacted.before[CLEARED]}
    assert {"patterns", "memories", "retrievals", "context_stats"} <= before
    after = compacted.after
    assert (after[CLEARED], after["vectors"], after["encoded"]) == ([], [], [])
    async with on_disk(compacted.folder) as lot:
        kept = await lot.on("another").memories.GetMemory(memory_id="x")
    assert kept.memory.content == "stays"


@pytest.mark.parametrize("delete", DELETES)
def test_a_delete_leaves_no_byte(compacted: Compacted, delete: str) -> None:
    assert compacted.before[delete], "before the compaction it is there"
    assert compacted.after[delete] == []


def test_what_is_of_another_subject_stays(compacted: Compacted) -> None:
    assert compacted.after["his"]


def test_every_delete_of_the_contract_is_tried() -> None:
    deletes = {name.partition(".")[2] for name in WRITES if ".Delete" in name}
    tried = {f"Delete{name.title().replace('_', '')}" for name in DELETES}
    assert deletes <= tried
