"""The store that stage 2 left behind opens with its vectors; only terms are made anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from lot_grpc.domain.cells import Fading
from lot_grpc.domain.query import Legs, PatternFilter
from lot_grpc.embedding.hashing import HashingEmbedder
from lot_grpc.services.backfill import bring_up_to_date
from lot_grpc.services.cell_backfill import make_cells, needs_cells
from lot_grpc.services.recall.targets import RecallOptions, pattern_request
from lot_grpc.services.records.collections import CODE_VECTOR, PATTERNS, SPARSE_VECTOR, TEXT_VECTOR
from tests.contract.clock import FixedClock
from tests.fixtures.archive import unpack
from tests.fixtures.stage_1 import NS, open_services
from tests.fixtures.stage_2 import ARCHIVE, RETRY


async def test_a_store_of_stage_2_opens_with_its_vectors(tmp_path: Path) -> None:
    unpack(ARCHIVE, tmp_path)
    store, services = await open_services(tmp_path, FixedClock())
    try:
        assert await bring_up_to_date(store, HashingEmbedder()) == 6  # all that has terms
        records = await store.scroll(PATTERNS, NS, (), limit=9, vectors=True)
        vectors = {one.payload["pattern_id"]: set(one.vectors) for one in records}
        assert vectors.pop("retry") == {TEXT_VECTOR, CODE_VECTOR, SPARSE_VECTOR}
        assert list(vectors.values()) == [{TEXT_VECTOR, SPARSE_VECTOR}] * 2
        for legs in Legs:
            question = pattern_request(
                RecallOptions("backoff attempt", 1, legs=legs), PatternFilter()
            )
            [hit] = (await services.pattern_recall.find(NS, question)).hits
            assert hit.thing.content == RETRY
    finally:
        await store.close()


async def test_what_stage_2_learned_is_still_known(tmp_path: Path) -> None:
    unpack(ARCHIVE, tmp_path)
    store, services = await open_services(tmp_path, FixedClock())
    try:
        await bring_up_to_date(store, HashingEmbedder())
        assert await needs_cells(store)
        assert await make_cells(store, HashingEmbedder(), Fading()) == 1
        assert not await needs_cells(store)
        assert await make_cells(store, HashingEmbedder(), Fading()) == 0
        question = pattern_request(RecallOptions("sign in", 5), PatternFilter())
        hits = (await services.pattern_recall.find(NS, question)).hits
        (login,) = [hit for hit in hits if hit.thing.pattern_id == "login"]
        (known,) = login.evidence.neighbours
        assert known.query == "sign in"
        assert known.cosine == pytest.approx(1.0)
        assert known.trials == pytest.approx(1 + 0.93 + 0.93**2)  # a success, a failure, a half
        assert known.successes == pytest.approx(0.93**2 + 0.5)
    finally:
        await store.close()


async def test_a_start_that_was_stopped_makes_the_rest_of_the_cells_later(tmp_path: Path) -> None:
    unpack(ARCHIVE, tmp_path)
    store, _ = await open_services(tmp_path, FixedClock())
    try:
        await bring_up_to_date(store, HashingEmbedder())
        assert await make_cells(store, HashingEmbedder(), Fading(), stop=lambda: True) == 0
        assert await needs_cells(store)
        assert await make_cells(store, HashingEmbedder(), Fading()) == 1
    finally:
        await store.close()
