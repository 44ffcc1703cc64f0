"""Recalls that are held out: ranked as if nothing had been learned, and recorded as such."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.holdout import in_holdout
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.query import MemoryFilter, Ranking
from lot_grpc.domain.retrieval import Retrieval
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.recall.targets import RecallOptions, memory_request
from lot_grpc.services.retrievals import retrievals
from tests.services.world import NS, World, memory, outcome, recall, save

WORDS = "log in to the web site of the city library with the password of the reader"
QUERY = f"{WORDS} 1"


@pytest.fixture
async def learned(world: World) -> World:
    """What is most relevant failed; the other one worked."""
    one, two = [(await save(world, f"{WORDS} {n}", pattern_id=f"p{n}")).pattern for n in (1, 2)]
    for _ in range(4):
        await outcome(world, one.pattern_id, outcome=Outcome.FAILURE, query=QUERY)
        await outcome(world, two.pattern_id, query=QUERY)
    return world


async def hold_out(world: World, share: float) -> None:
    edit = PolicyEdit(NamespacePolicy(holdout_share=share), frozenset({"holdout_share"}))
    await world.services.retention.policies.update(NS, edit, "")


async def retrieval(world: World, retrieval_id: str) -> Retrieval:
    return (await world.services.receipts.receipt(NS, retrieval_id)).retrieval


def first(answer: Any) -> str:
    hit = answer.hits[0]
    return str(hit.resource.id)


async def test_without_a_share_nothing_is_held_out(learned):
    answer = await recall(learned, QUERY)
    assert first(answer) == "p2"
    assert (await retrieval(learned, answer.retrieval_id)).options.holdout is None


@pytest.mark.parametrize("ranking", [Ranking.BALANCED, Ranking.RELIABLE, Ranking.EXPLORE])
async def test_a_share_of_recalls_is_ranked_as_if_nothing_was_learned(learned, ranking):
    await hold_out(learned, 0.5)
    seen = {True: 0, False: 0}
    for _ in range(40):
        answer = await recall(learned, QUERY, ranking=ranking)
        held = in_holdout(answer.retrieval_id, 0.5)
        assert first(answer) == ("p1" if held else "p2")
        assert (await retrieval(learned, answer.retrieval_id)).options.holdout is held
        seen[held] += 1
    assert all(seen.values())


@pytest.mark.parametrize("ranking", [Ranking.RELEVANCE, Ranking.SIMILARITY])
async def test_a_ranking_that_does_not_use_what_was_learned_is_in_neither_arm(learned, ranking):
    await hold_out(learned, 0.5)
    for _ in range(10):
        answer = await recall(learned, QUERY, ranking=ranking)
        assert first(answer) == "p1"
        assert (await retrieval(learned, answer.retrieval_id)).options.holdout is None


async def test_what_is_held_out_is_ranked_as_in_a_namespace_without_outcomes(
    learned, world, monkeypatch
):
    """To the bit: the parts of the scores as well."""
    await hold_out(learned, 0.5)
    monkeypatch.setattr(retrievals, "in_holdout", lambda retrieval_id, share: True)
    held = await recall(learned, QUERY, limit=2)
    for number in (1, 2):
        await world.services.patterns.patterns.delete(NS, f"p{number}")
        await save(world, f"{WORDS} {number}", pattern_id=f"p{number}")
    monkeypatch.setattr(retrievals, "in_holdout", lambda retrieval_id, share: False)
    fresh = await recall(world, QUERY, limit=2)
    assert [(hit.resource, hit.score, hit.parts) for hit in held.hits] == [
        (hit.resource, hit.score, hit.parts) for hit in fresh.hits
    ]


async def test_importance_counts_in_the_holdout_too(world, monkeypatch):
    await hold_out(world, 0.5)
    monkeypatch.setattr(retrievals, "in_holdout", lambda retrieval_id, share: True)
    for number, importance in ((1, 0.1), (2, 0.9)):
        content = f"{WORDS} {number}"
        made = memory(content, memory_id=f"m{number}", importance=importance)
        await world.services.memories.memories.create(NS, made)
    request = memory_request(RecallOptions(QUERY, 5), MemoryFilter())
    answer = await world.services.recall.memories.find(NS, request)
    assert first(answer) == "m2"


async def test_all_kinds_of_a_context_are_held_out_alike(learned, monkeypatch):
    await hold_out(learned, 0.5)
    for held in (True, False):
        monkeypatch.setattr(retrievals, "in_holdout", lambda retrieval_id, share, h=held: h)
        request = ContextRequest(QUERY, min_similarity=0.0, limit=1)
        context = await learned.services.task_contexts.gather(NS, request)
        assert first(context.patterns) == ("p1" if held else "p2")
        assert (await retrieval(learned, context.retrieval_id)).options.holdout is held
