"""The store that stage 5 left behind opens as it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from lot_grpc.domain.query import MemoryFilter, PatternFilter
from lot_grpc.domain.session import SessionValue
from lot_grpc.embedding.hashing import HashingEmbedder
from lot_grpc.ports import MultiVector
from lot_grpc.services.backfill import bring_up_to_date
from lot_grpc.services.build import Services
from lot_grpc.services.error_backfill import read_errors_anew
from lot_grpc.services.memories.error_finder import ErrorQuery
from lot_grpc.services.recall.targets import RecallOptions, memory_request, pattern_request
from lot_grpc.services.records.collections import MEMORIES, PASSAGE_VECTORS
from lot_grpc.services.records.memories import memory_point
from tests.contract.clock import FixedClock
from tests.fixtures.archive import unpack
from tests.fixtures.stage_1 import NS, open_services
from tests.fixtures.stage_5 import ARCHIVE, DIMENSIONS, LONG
from tests.services.invariants import check_invariants

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(module_path: Path) -> AsyncIterator[Services]:
    unpack(ARCHIVE, module_path)
    clock = FixedClock()
    clock.advance(26 * 3600)
    embedder = HashingEmbedder(DIMENSIONS)
    store, opened = await open_services(module_path, clock, embedder)
    assert await bring_up_to_date(opened.model_store, embedder) == 23  # all that has terms
    assert await read_errors_anew(opened.model_store, embedder) == 2
    await opened.housekeeping.roll_forward(starting=True)
    await check_invariants(opened.model_store, NS)
    yield opened
    await store.close()


async def test_its_vectors_are_those_of_the_second_model(services: Services) -> None:
    assert services.model.epoch == 1
    requested = pattern_request(RecallOptions("Log in to the admin panel", 3), PatternFilter())
    found = await services.pattern_recall.find(NS, requested)
    assert found.hits[0].thing.pattern_id == "login"
    point = memory_point(NS, "handbook")
    there = await services.model_store.get(MEMORIES, NS, [point], vectors=True)
    several = there[point].vectors[PASSAGE_VECTORS]
    assert isinstance(several, MultiVector)
    assert {len(one) for one in several.vectors} == {DIMENSIONS}


async def test_memories_are_as_they_were(services: Services) -> None:
    requested = memory_request(RecallOptions("what is told of topic13", 1), MemoryFilter())
    found = await services.memory_recall.find(NS, requested)
    assert found.hits[0].thing.memory_id == "handbook"
    assert found.hits[0].thing.content.content == LONG
    [passage] = await services.memory_passages.of([found.hits[0].thing], found.vector)
    assert passage is not None
    assert "topic13" in passage.text


async def test_errors_preferences_and_sessions_are_as_they_were(services: Services) -> None:
    question = ErrorQuery("ModuleNotFoundError", "No module named 'PIL'")
    hit = (await services.error_finder.find(NS, question)).hits[0]
    assert (hit.exact, hit.error_solution.outcomes.usage_count) == (True, 1)
    assert [(one.given, one.stored) for one in hit.differences] == [("PIL", "yaml")]
    preference, history = await services.preferences.get_with_history(NS, "style", 10)
    assert preference.value is None
    assert [one.value for one in history] == [{"indent": 4.0}, "tabs"]
    session = await services.sessions.get(NS, "chat")
    assert [one.content for one in session.messages] == [f"message {n}" for n in range(3)]
    assert session.values == {"topic": SessionValue(b"\x1a\x01x")}


async def test_what_was_cleared_is_gone(services: Services) -> None:
    names = [one.namespace for one in (await services.namespaces.page(100, "")).namespaces]
    assert "cleared" not in names
