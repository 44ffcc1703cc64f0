"""Which near-ties are read where importance ranks: those that can reach the page."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from lot_grpc.domain.fusion import Relevance
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import (
    IMPORTANCE,
    Candidate,
    Ranked,
    RankingWeights,
    before_importance,
    rank,
)
from lot_grpc.ports import IdIn, Record
from lot_grpc.services.recall.importance import ImportanceReader
from lot_grpc.services.records.collections import MEMORIES
from tests.services.world import NS, World, open_world

WEIGHTS = RankingWeights(importance=IMPORTANCE)


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
    scores: Sequence[float] | None = None,
) -> Mapping[str, Record]:
    """The page, and what may rise onto it."""
    page = dict(await world.store.get(MEMORIES, NS, [one.id for one in near[:limit]]))
    scores = scores or [one.value for one in near]
    standing = [(one.id, score) for one, score in zip(near, scores, strict=True)]
    return {**page, **await reader_of(world).rising(NS, standing, limit, weight, page)}


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


@pytest.mark.parametrize("importances", [(0.5,), (0.0, 0.25, 0.5, 0.6, 1.0)])
@pytest.mark.parametrize("ranking", [Ranking.BALANCED, Ranking.RELIABLE, Ranking.EXPLORE])
async def test_the_page_is_the_same_where_outcomes_count_as_well(
    world: World, importances: Sequence[float], ranking: Ranking
) -> None:
    chosen = random.Random(7)
    fewer = 0
    for limit in (*range(1, 13), 39, 40):
        near, records = await pool(world, chosen, importances)
        trials = {one.id: chosen.choice((0.0, 0.0, 1.0, 9.0)) for one in near}
        worked = {one.id: trials[one.id] * chosen.choice((0.0, 0.5, 1.0)) for one in near}

        used = [
            Candidate(one.id, one.value, worked[one.id], trials[one.id], importance=0.0)
            for one in near
        ]
        scores = before_importance(used, ranking, WEIGHTS, 5)
        found = await read(world, near, limit, scores=scores)
        pages = [
            rank(
                [
                    replace(one, importance=those[one.id].payload["importance"])
                    if one.id in those
                    else one
                    for one in used
                ],
                ranking,
                WEIGHTS,
                limit,
                5,
            )
            for those in (found, records)
        ]
        assert pages[0] == pages[1]
        assert {one.candidate.id for one in pages[0]} <= found.keys()
        fewer += len(found) < 40
    assert fewer > 3


async def test_a_page_of_which_some_was_deleted_is_not_enough_to_tell(world: World) -> None:
    near, _ = await pool(world, random.Random(5), (0.5,))
    await world.store.delete(MEMORIES, NS, [IdIn(tuple(one.id for one in near[:3]))])
    assert await read(world, near, 3) == {}


async def test_with_weight_zero_only_the_page_is_read(world: World) -> None:
    near, _ = await pool(world, random.Random(6), (0.0, 1.0))
    assert set(await read(world, near, 3, weight=0.0)) == {one.id for one in near[:3]}
    assert await read(world, [], 3, weight=0.0) == {}
