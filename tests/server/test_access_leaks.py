"""What is of one namespace, tried in another: every id in every field that takes one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import transfer_pb2
from lot_grpc.ports import VectorStore
from lot_grpc.server.guards import Guards
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.qdrant import QdrantStore
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.server.examples import EXAMPLES, example, method_of, places
from tests.server.keys import Keys, principal
from tests.server.service import Lot, serving
from tests.server.test_access_matrix import attempt
from tests.server.transfers import exported, records_of

HERE, THERE = "team-a", "team-b"
WORD = b"xylograph"
"""In every text of the first namespace, and in none of the second."""

ID_FIELD = re.compile(r"(^|\.)(id|key|supersedes|\w+_ids?)(\[\d\])?$")


@pytest.fixture(params=["in_memory", "edge", "qdrant"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> VectorStore:
    clock = FixedClock()
    match request.param:
        case "in_memory":
            return InMemoryStore(clock)
        case "edge":
            return EdgeStore(tmp_path / "data", clock, min_free_bytes=0)
    return QdrantStore(clock, location=":memory:")


def guards() -> Guards:
    return Guards(
        authenticator=Keys(
            principal("a", f"admin {HERE}"),
            principal("b", f"admin {THERE}"),
            principal("all", "admin *"),
        )
    )


async def fill(lot: Lot) -> set[str]:
    """A record of each kind with the word in it; returns the ids that name them."""
    text, patterns, memories, learning = WORD.decode(), lot.patterns, lot.memories, lot.learning
    for name in ("a1-id", "a2-id"):
        await patterns.SavePattern(pattern={"task": f"{text} {name}"}, pattern_id=name)
        await memories.CreateMemory(memory={"content": f"{text} {name}"}, memory_id=name)
        await memories.SaveErrorSolution(
            error_solution={"error_message": f"{text} {name}", "resolution": text},
            error_solution_id=name,
        )
        await memories.PutPreference(key=name, value={"string_value": text})
        await memories.PutSessionValue(session_id=name, key="a1-id", value={"string_value": text})
        await memories.AppendSessionMessage(
            session_id=name, message={"role": "user", "content": text}
        )
        await lot.episodes.StartEpisode(episode={"task": f"{text} {name}"}, episode_id=name)
        for _ in range(2):
            await lot.episodes.RecordEvent(
                episode_id=name, event={"event_type": "step", "data": {"text": text}}
            )
        await learning.RecordDecision(
            decision={"context": text, "chosen_option": text}, decision_id=name
        )
        await learning.RecordLearningEvent(
            learning_event={"event_type": "step", "text": text}, learning_event_id=name
        )
    ended = {"task": f"{text} ended", "status": "EPISODE_STATUS_SUCCEEDED"}
    await lot.episodes.RecordEpisode(
        episode=ended, episode_id="a3-id", events=[{"event_type": "x"}]
    )
    state = {"task_type": text}
    chosen = await learning.SelectAction(state=state, actions=[{"name": text}])
    for action in (text, f"{text} 2"):
        await learning.RecordSteps(steps=[{"state": state, "action": action, "reward": 0.5}])
    used = await patterns.RecordOutcome(pattern_ids=["a1-id"], outcome=1, query=text)
    await patterns.RecordOutcome(pattern_ids=["a1-id"], outcome=1, query=text)
    found = await memories.SearchMemories(query=text)
    await patterns.RecallPatterns(query=text)
    await learning.ListRetrievals()  # writes what waits
    return {"a1-id", "a3-id", found.retrieval_id, chosen.selection_id, used.outcome_id}


def requests_with(name: str, ids: set[str]) -> Iterator[tuple[str, Any]]:
    """The example of an RPC in the second namespace, with each id in each field for one."""
    for place in places(method_of(name).input_type, depth=2):
        if place.field.type == place.field.TYPE_STRING and ID_FIELD.search(place.path):
            for one in sorted(ids):
                request = example(name, THERE)
                place.put(request, one)
                yield place.path, request


async def test_no_id_of_one_namespace_finds_anything_from_another(store):
    async with serving(store, clock=FixedClock(), guards=guards()) as lot:
        here, tried = lot.on(HERE).by("a"), 0
        ids = await fill(here)
        before = records_of(await exported(here))
        assert WORD in b"".join(one.SerializeToString() for one in before)
        for name in sorted(EXAMPLES):  # before any of the ids is known there
            shown = await attempt(lot, name, example(name, THERE), "b")
            found = [one for one in ids if one.encode() in shown.raw]
            assert not found, name
        for name in sorted(EXAMPLES):
            for path, request in requests_with(name, ids):
                done = await attempt(lot, name, request, "b")
                assert WORD not in done.raw + repr(done.failure).encode(), (name, path)
                tried += 1
        assert tried > 500
        assert records_of(await exported(here)) == before
        left = b"".join(
            one.SerializeToString() for one in records_of(await exported(lot.on(THERE).by("b")))
        )
        assert WORD not in left


async def test_what_is_listed_found_and_counted_is_of_what_the_caller_may_read(store):
    async with serving(store, clock=FixedClock(), guards=guards()) as lot:
        await fill(lot.on(HERE).by("a"))
        await lot.on(THERE).by("b").memories.CreateMemory(memory={"content": "mine"})
        whole = lot.on(HERE).by("all").admin
        assert len((await whole.ListNamespaces()).namespaces) == 2
        narrow = lot.on(THERE).by("b")
        listed = await narrow.admin.ListNamespaces(page_size=1)
        assert [one.namespace for one in listed.namespaces] == [THERE]
        assert not listed.next_page_token
        found = await narrow.memories.SearchMemories(query=WORD.decode(), limit=100)
        assert [hit.memory.content for hit in found.hits] == ["mine"]
        info, full = await narrow.admin.GetServerInfo(), await whole.GetServerInfo()
        assert full.record_counts["PATTERN"] == 2
        assert not info.record_counts
        assert info.store.ListFields() == [(info.store.DESCRIPTOR.fields_by_name["writable"], True)]
        ready, detailed = await narrow.admin.CheckReady(), await whole.CheckReady()
        assert [(one.name, one.ok) for one in ready.checks] == [
            (one.name, one.ok) for one in detailed.checks
        ]
        assert [one.detail for one in ready.checks] == [""] * len(ready.checks)
        assert any(one.detail for one in detailed.checks)


async def test_a_record_that_names_another_namespace_is_stored_in_that_of_the_request(store):
    async with serving(store, clock=FixedClock(), guards=guards()) as lot:
        here, there = lot.on(HERE).by("a"), lot.on(THERE).by("b")
        made = await there.memories.CreateMemory(memory={"content": "c", "namespace": HERE})
        assert made.memory.namespace == THERE
        saved = await there.patterns.SavePattern(pattern={"task": "t", "namespace": HERE})
        assert saved.pattern.namespace == THERE
        policy = await there.admin.UpdateNamespacePolicy(
            policy={"max_patterns": 9, "namespace": HERE}
        )
        assert policy.policy.namespace == THERE
        assert not records_of(await exported(here))


async def test_an_import_writes_only_into_the_namespace_that_was_opened(store):
    async with serving(store, clock=FixedClock(), guards=guards()) as lot:
        here, there = lot.on(HERE).by("a"), lot.on(THERE).by("b")
        await here.memories.CreateMemory(memory={"content": "c"}, memory_id="m")
        messages = await exported(here)  # whose records say that they are of the first namespace
        opening = transfer_pb2.ImportRequest(namespace=THERE, header=messages[0].header)
        records = transfer_pb2.ImportRequest(records=records_of(messages))
        await here.memories.DeleteMemory(memory_id="m")
        acks = [ack async for ack in there.admin.Import(iter([opening, records]), timeout=30)]
        assert acks[-1].imported_count == len(records.records)
        assert not records_of(await exported(here))
        assert (await there.memories.GetMemory(memory_id="m")).memory.namespace == THERE
