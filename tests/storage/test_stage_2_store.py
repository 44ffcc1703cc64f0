"""The store that stage 2 left behind opens as it is, with nothing to bring up to date."""

from __future__ import annotations

from pathlib import Path

from lot_grpc.domain.query import Legs, PatternFilter
from lot_grpc.embedding.hashing import HashingEmbedder
from lot_grpc.services.backfill import bring_up_to_date
from lot_grpc.services.questions import Asked, pattern_question
from lot_grpc.services.records.collections import CODE_VECTOR, PATTERNS, SPARSE_VECTOR, TEXT_VECTOR
from tests.contract.clock import FixedClock
from tests.fixtures.archive import unpack
from tests.fixtures.stage_1 import NS, open_services
from tests.fixtures.stage_2 import ARCHIVE, RETRY


async def test_a_store_of_stage_2_opens_with_its_vectors(tmp_path: Path) -> None:
    unpack(ARCHIVE, tmp_path)
    store, services = await open_services(tmp_path, FixedClock())
    try:
        assert await bring_up_to_date(store, HashingEmbedder()) == 0
        records = await store.scroll(PATTERNS, NS, (), limit=9, vectors=True)
        vectors = {one.payload["pattern_id"]: set(one.vectors) for one in records}
        assert vectors.pop("retry") == {TEXT_VECTOR, CODE_VECTOR, SPARSE_VECTOR}
        assert list(vectors.values()) == [{TEXT_VECTOR, SPARSE_VECTOR}] * 2
        for legs in Legs:
            question = pattern_question(Asked("backoff attempt", 1, legs=legs), PatternFilter())
            [hit] = (await services.pattern_recall.find(NS, question)).hits
            assert hit.thing.content == RETRY
    finally:
        await store.close()
