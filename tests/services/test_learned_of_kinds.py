"""Memories and episodes are ranked by what their outcomes taught, as patterns are."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.query import EpisodeFilter, MemoryFilter, PatternFilter, Ranking
from lot_grpc.domain.ranking import IMPORTANCE, RankingWeights
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.memories.drafts import MemoryDraft
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.recall.recall import Answer
from lot_grpc.services.recall.targets import (
    RecallOptions,
    episode_request,
    memory_request,
    pattern_request,
)
from tests.services.world import NS, World, draft, end, start

QUERY = "renew the books of the library card"
OTHER = "buy train tickets to the sea"
TEXTS = {"a": f"{QUERY} on line", "b": f"{QUERY} on time", "far": "dance in the rain all night"}
S, F = Outcome.SUCCESS, Outcome.FAILURE
LEARNED = RankingWeights().learned
KINDS = (ResourceKind.PATTERN, ResourceKind.MEMORY, ResourceKind.EPISODE)
of_each_kind = pytest.mark.parametrize("kind", KINDS)


async def fill(world: World, kind: str) -> None:
    for one, text in TEXTS.items():
        if kind == ResourceKind.PATTERN:
            await world.services.patterns.writer.save(NS, draft(text, pattern_id=one))
        elif kind == ResourceKind.MEMORY:
            given = MemoryDraft(MemoryContent(text), memory_id=one)
            await world.services.memories.memories.create(NS, given)
        else:
            await world.services.episodes.creator.start(NS, start(text, episode_id=one))
            await world.services.episodes.ender.end(NS, one, end(), "")


async def recall(world: World, kind: str, query: str = QUERY, **options: Any) -> Answer[Any]:
    asked, recalls = RecallOptions(query, options.pop("limit", 3), **options), world.services.recall
    if kind == ResourceKind.PATTERN:
        return await recalls.patterns.find(NS, pattern_request(asked, PatternFilter()))
    if kind == ResourceKind.MEMORY:
        return await recalls.memories.find(NS, memory_request(asked, MemoryFilter()))
    request = episode_request(asked, EpisodeFilter(), success_only=False)
    return await recalls.episodes.find(NS, request)


def ids(answer: Answer[Any]) -> list[str]:
    return [hit.resource.id for hit in answer.hits]


async def told(world: World, kind: str, used: str, outcome: Outcome, **named: Any) -> None:
    given = OutcomeDraft(**{"pattern_ids": (), f"{kind}_ids": (used,), **named}, outcome=outcome)
    await world.services.outcomes.recorder.record(NS, given)


@of_each_kind
async def test_a_near_tie_that_failed_gives_way_and_one_that_worked_leads(world, kind):
    await fill(world, kind)
    first = await recall(world, kind)
    best, second, far = ids(first)
    assert far == "far"
    await told(world, kind, best, F, retrieval_id=first.retrieval_id)
    assert ids(await recall(world, kind)) == [second, best, far]
    await told(world, kind, best, S, retrieval_id=first.retrieval_id)
    await told(world, kind, best, S, retrieval_id=first.retrieval_id)
    after = await recall(world, kind)
    assert ids(after) == [best, second, far]
    [seen] = after.hits[0].evidence.neighbours
    assert (seen.query, round(seen.cosine, 6)) == (QUERY, 1.0)
    assert not after.hits[1].evidence.neighbours


@of_each_kind
async def test_what_was_learned_on_another_query_changes_nothing(world, kind):
    await fill(world, kind)
    before = await recall(world, kind)
    for _ in range(5):
        await told(world, kind, ids(before)[0], F, query=OTHER)
    after = await recall(world, kind)
    assert [(hit.resource, hit.score) for hit in after.hits] == [
        (hit.resource, hit.score) for hit in before.hits
    ]


@of_each_kind
async def test_what_was_not_used_is_not_moved(world, kind):
    await fill(world, kind)
    before = await recall(world, kind)
    await told(world, kind, "b", S, query=QUERY)
    after = {hit.resource.id: hit for hit in (await recall(world, kind)).hits}
    [was] = [hit for hit in before.hits if hit.resource.id == "a"]
    assert after["a"].score == was.score
    assert not after["a"].evidence.neighbours


@of_each_kind
async def test_outcomes_are_of_one_kind_even_if_another_has_the_same_id(world, kind):
    for one in KINDS:
        await fill(world, one)
    before = {one: ids(await recall(world, one)) for one in KINDS}
    await told(world, kind, before[kind][0], F, query=QUERY)
    for one in KINDS:
        assert (ids(await recall(world, one)) == before[one]) == (one != kind)


@of_each_kind
async def test_every_ranking_counts_outcomes_as_it_says(world, kind):
    await fill(world, kind)
    best = ids(await recall(world, kind))[0]
    for _ in range(3):
        await told(world, kind, best, F, query=QUERY)
    leads = {one: ids(await recall(world, kind, ranking=one, seed=4))[0] == best for one in Ranking}
    assert leads == {
        Ranking.BALANCED: False,
        Ranking.RELIABLE: False,
        Ranking.EXPLORE: False,
        Ranking.RELEVANCE: True,
        Ranking.SIMILARITY: True,
    }
    names = {"balanced": "learned", "reliable": "reliability", "explore": "explored"}
    for one in (Ranking.BALANCED, Ranking.RELIABLE, Ranking.EXPLORE):
        hits = (await recall(world, kind, ranking=one, seed=4)).hits
        named = [part.name for hit in hits for part in hit.parts]
        assert named.count(names[one.value]) == 2


async def test_importance_and_outcomes_both_move_a_memory(world):
    await fill(world, ResourceKind.MEMORY)
    given = MemoryDraft(MemoryContent(f"{QUERY} at once", importance=1.0), memory_id="c")
    await world.services.memories.memories.create(NS, given)
    assert ids(await recall(world, ResourceKind.MEMORY, limit=4))[0] == "c"
    for _ in range(3):
        await told(world, ResourceKind.MEMORY, "c", F, query=QUERY)
    answer = await recall(world, ResourceKind.MEMORY, limit=4, explain=True)
    hits = {hit.resource.id: hit for hit in answer.hits}
    assert ids(answer)[2:] == ["c", "far"]
    parts = {part.name: (part.value, part.weight) for part in hits["c"].parts}
    assert parts["importance"] == (1.0, IMPORTANCE)
    assert parts["learned"][0] < -0.2
    assert parts["learned"][1] == LEARNED
    outside = {part.name: (part.value, part.weight) for part in hits["far"].parts}
    assert outside["outside_reorder_margin"] == (1.0, -(LEARNED + IMPORTANCE))
    for hit in answer.hits:
        assert hit.score == pytest.approx(sum(part.value * part.weight for part in hit.parts))


async def test_a_hit_below_the_page_rises_by_what_was_learned_and_by_importance(world):
    kind = ResourceKind.MEMORY
    await fill(world, kind)
    for name, importance in (("worked", 0.5), ("important", 1.0)):
        content = MemoryContent(f"{QUERY} and more {name} words", importance=importance)
        await world.services.memories.memories.create(NS, MemoryDraft(content, memory_id=name))
    page = ids(await recall(world, kind, limit=1, ranking=Ranking.RELEVANCE))
    assert page[0] in ("a", "b")
    for one in ("a", "b"):
        await told(world, kind, one, F, query=QUERY)
    for _ in range(4):
        await told(world, kind, "worked", S, query=QUERY)
    assert ids(await recall(world, kind, limit=1)) == ["worked"]
    for _ in range(4):
        await told(world, kind, "worked", F, query=QUERY)
    assert ids(await recall(world, kind, limit=1)) == ["important"]


async def test_a_context_learns_from_what_was_used_of_it(world):
    for kind in KINDS:
        await fill(world, kind)
    context = await world.services.task_contexts.gather(NS, ContextRequest(QUERY, limit=3))
    assert {hit.resource.id for hit in context.memories} >= {"a", "b"}
    best = context.memories[0].resource.id
    for _ in range(2):
        await told(world, ResourceKind.MEMORY, best, F, retrieval_id=context.retrieval_id)
    again = await world.services.task_contexts.gather(NS, ContextRequest(QUERY, limit=3))
    assert again.memories[0].resource.id != best
