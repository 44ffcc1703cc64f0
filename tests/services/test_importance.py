"""Which near-ties are read where importance ranks: those that can reach the page."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from lot_grpc.domain.fusion import Relevance
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import IMPORTANCE, Candidate, Ranked, RankingWeights, rank
from lot_grpc.ports import IdIn, Record
from lot_grpc.services.recall.importance import ImportanceReader
from lot_grpc.services.records.collections import MEMORIES
from tests.services.world import NS, World, open_world

WEIGHTS = RankingWeights(learned=IMPORTANCE)


@pytest.fixture
async def world() -> World:
    return await open_world()


async def pool(
    world: World, chosen: random.Random, importances: Sequence[float]
) -> tuple[list[Relevance], dict[str, Record]]:
    """Near-ties, best first, many of them equal, and their records."""
    await world.store.delete(MEMORIES, NS, [IdIn(tuple(map(point, range(40))))])
    values = sorted((0.9 - chosen.randrange(30) * 0.005 for _ in range(40)), reverse=True)
    records = [
        Record(point(number), NS, {"importance": chosen.choice(importances)})
        for number in range(40)
    ]
    await world.store.put(MEMORIES, records)
    near = [Relevance(point(n), value, value, 0.0, 1.0) for n, value in enumerate(values)]
    return near, {record.id: record for record in records}


def reader_of(world: World) -> ImportanceReader:
    return ImportanceReader(world.store, MEMORIES, lambda record: record.payload["importance"])


async def read(
    world: World,
    near: Sequence[Relevance],
    limit: int,
    weight: float = IMPORTANCE,
    known: Mapping[str, Record] | None = None,
) -> Mapping[str, Record]:
    found = await reader_of(world).read(NS, near, limit, weight, known or {})
    assert found is not None
    return found


def point(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012}"


def page(near: Sequence[Relevance], records: Mapping[str, Record], limit: int) -> list[Ranked]:
    candidates = [
        Candidate(one.id, one.value, importance=records[one.id].payload["importance"])
        for one in near
        if one.id in records
    ]
    return rank(candidates, Ranking.BALANCED, WEIGHTS, limit)


@pytest.mark.parametrize("importances", [(0.5,), (0.5, 0.5, 0.5, 0.9), (0.0, 0.25, 0.5, 0.6, 1.0)])
async def test_the_page_is_the_same_as_if_all_were_read(
    world: World, importances: Sequence[float]
) -> None:
    chosen = random.Random(3)
    for limit in (*range(1, 13), 39, 40, 41):
        near, records = await pool(world, chosen, importances)
        found = await read(world, near, limit)
        assert page(near, found, limit) == page(near, records, limit)
        if importances == (0.5,):  # none can rise
            assert len(found) == min(limit, 40)


async def test_what_was_read_already_is_not_read_again(world: World) -> None:
    near, records = await pool(world, random.Random(4), (0.5,))
    await world.store.delete(MEMORIES, NS, [IdIn((near[0].id,))])
    known = {near[0].id: records[near[0].id]}
    assert near[0].id in await read(world, near, 3, known=known)


async def test_no_answer_if_a_record_of_the_page_was_deleted(world: World) -> None:
    near, _ = await pool(world, random.Random(5), (0.5,))
    await world.store.delete(MEMORIES, NS, [IdIn((near[0].id,))])
    assert await reader_of(world).read(NS, near, 3, IMPORTANCE, {}) is None


async def test_with_weight_zero_only_the_page_is_read(world: World) -> None:
    near, _ = await pool(world, random.Random(6), (0.0, 1.0))
    assert set(await read(world, near, 3, weight=0.0)) == {one.id for one in near[:3]}
    assert await read(world, [], 3, weight=0.0) == {}
