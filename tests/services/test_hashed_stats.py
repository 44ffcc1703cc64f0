"""Outcomes of hashed queries beside those of queries whose text is known: neither takes the other
along when the model is switched."""

from __future__ import annotations

import pytest

from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.retrieval import RetrievalQueries, is_query_hash
from lot_grpc.domain.transfer import ExportSpec, ImportTerms
from lot_grpc.services.outcomes import context_stats
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft
from lot_grpc.services.records.collections import CONTEXT_STATS, OUTCOMES
from lot_grpc.services.transfer.importer import ImportRun
from tests.services.invariants import check_invariants
from tests.services.world import NS, World, open_world, outcome, payloads, recall, save

QUERY = "log in to the site"


async def hashed_outcome(world: World, query: str) -> None:
    answer = await recall(world, query)
    await outcome(world, "p", retrieval_id=answer.retrieval_id)


async def learned(world: World) -> list[tuple[bool, int]]:
    """For each query with outcomes, whether it is hashed, and how many."""
    stats = await payloads(world, CONTEXT_STATS)
    return sorted((is_query_hash(one["query"]), one["count"]) for one in stats if "query" in one)


@pytest.fixture
async def hashing(world: World) -> World:
    policy = NamespacePolicy(retrieval_queries=RetrievalQueries.HASH)
    edit = PolicyEdit(policy, frozenset({"retrieval_queries"}))
    await world.services.retention.policies.update(NS, edit, "")
    await save(world, QUERY, pattern_id="p")
    return world


@pytest.mark.parametrize("hashed_first", [True, False])
async def test_stats_of_a_text_are_never_merged_with_those_of_a_hash(
    hashing, monkeypatch, hashed_first
):
    """The nearest are a text and its own hash."""
    monkeypatch.setattr(context_stats, "MAX_CONTEXT_STATS", 2)
    for hashed in (hashed_first, not hashed_first):
        if hashed:
            await hashed_outcome(hashing, QUERY)
        else:
            await outcome(hashing, "p", query=QUERY)
    await outcome(hashing, "p", query="water the plants")
    await hashed_outcome(hashing, "bake bread")
    assert await learned(hashing) == [(False, 2), (True, 2)]
    await check_invariants(hashing.store, NS)


async def test_stats_of_two_sorts_may_exceed_the_bound_by_one(hashing, monkeypatch):
    monkeypatch.setattr(context_stats, "MAX_CONTEXT_STATS", 1)
    await hashed_outcome(hashing, QUERY)
    await outcome(hashing, "p", query=QUERY)
    assert await learned(hashing) == [(False, 1), (True, 1)]


async def test_an_imported_correction_of_a_text_is_not_referred_to_a_hash(hashing, monkeypatch):
    """Its own stats were merged where it comes from; the nearest here are those of its hash."""
    monkeypatch.setattr(context_stats, "MAX_CONTEXT_STATS", 2)
    await outcome(hashing, "p", query="water the plants")
    await hashed_outcome(hashing, QUERY)
    await outcome(hashing, "p", query=QUERY)
    [row] = [one for one in await payloads(hashing, OUTCOMES) if one["query"] == QUERY]
    moved = [
        row
        async for row, _ in hashing.services.transfer.exporter.rows(ExportSpec(NS, vectors=True))
    ]
    target = await open_world()
    await target.services.transfer.importer.take(ImportRun(ImportTerms(same_space=True)), moved)
    assert await learned(target) == [(False, 2), (True, 1)]
    await target.services.outcomes.log.correct(NS, CorrectionDraft(row["outcome_id"]))
    assert await learned(target) == [(False, 1), (True, 1)]
