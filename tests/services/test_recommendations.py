"""Recommendations over a store: exactly the best, from successes only, of one namespace."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.episode import EpisodeEnd, EpisodeStart, EpisodeStatus
from lot_grpc.domain.recommendation import StructuralWeights, TaskProfile
from lot_grpc.ports import VectorStore
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.learning.recommendations import Recommender
from lot_grpc.services.records.collections import EPISODES, SORT_KEY
from lot_grpc.storage.edge import EdgeStore
from tests.contract.clock import FixedClock
from tests.services.world import NS, World, open_world, rows


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[VectorStore]:
    store = EdgeStore(tmp_path / "data", FixedClock(), min_free_bytes=0)
    yield store
    await store.close()


WORDS = ("deploy", "build", "rotate", "delete", "migrate", "test", "the", "site", "keys", "table")


async def record(
    world: World,
    episode_id: str = "",
    task: str = "t",
    status: EpisodeStatus = EpisodeStatus.SUCCEEDED,
    namespace: str = NS,
    **named: object,
) -> None:
    end = EpisodeEnd(status, tools_used=("git",), success_factors=("tests",))
    start = EpisodeStart(task, **named)  # type: ignore[arg-type]
    await world.services.episodes.creator.record(
        namespace, EpisodeDraft(start, episode_id, end=end)
    )


@dataclass
class Found:
    ids: list[str]
    scores: list[float]


async def recommended(
    world: World, limit: int = 10, min_score: float | None = None, **named: object
) -> Found:
    profile = TaskProfile(**named)  # type: ignore[arg-type]
    answer = await world.services.learning.recommender.recommend(NS, profile, limit, min_score)
    return Found(
        [one.episode.episode_id for one in answer.similar], [one.score for one in answer.similar]
    )


async def brute_force(
    world: World, profile: TaskProfile, limit: int, bound: float, weights: StructuralWeights
) -> Found:
    """Every successful episode scored one by one, with cosines worked out here."""
    query = (await world.embedder.embed_query(profile.task)).vector if profile.task else None
    scored = []
    stored = await world.store.scroll(EPISODES, NS, [], limit=100_000, vectors=True)
    for one in stored:
        payload = one.payload
        if payload["status"] != "succeeded":
            continue
        vector = one.vectors["text"]
        cosine = sum(a * b for a, b in zip(query, vector, strict=True)) if query else 0.0
        score = weights.text * max(0.0, cosine)
        if profile.category and payload.get("category") == profile.category:
            score += weights.category
        if profile.task_type and payload.get("task_type") == profile.task_type:
            score += weights.task_type
        if payload["complexity"] == profile.assessed:
            score += weights.complexity
        named = profile.category or profile.task_type
        own = payload.get("category") or payload.get("task_type")
        if query and not (named and own):
            score = max(score, cosine) if named else cosine
        if round(score, 9) >= bound:
            scored.append((-round(score, 9), -payload[SORT_KEY], payload["episode_id"]))
    scored.sort()
    return Found(
        [name for _, _, name in scored[:limit]], [-score for score, _, _ in scored[:limit]]
    )


async def filled(seed: int, count: int, store: VectorStore | None = None) -> World:
    world = await open_world(store)
    drawn = random.Random(seed)
    for number in range(count):
        await record(
            world,
            f"e{number}",
            " ".join(drawn.choices(WORDS, k=drawn.randrange(1, 4))),
            drawn.choice([EpisodeStatus.SUCCEEDED] * 3 + [EpisodeStatus.FAILED]),
            category=drawn.choice(("", "backend", "ui")),
            task_type=drawn.choice(("", "fix", "feature")),
            complexity=drawn.choice(list(Complexity)),
        )
    return world


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bound", [0.0, 0.25, 0.3, 0.45, 0.95])
async def test_they_are_exactly_the_best_by_structural_score(seed, bound):
    world = await filled(seed, 250)
    drawn = random.Random(seed + 100)
    for limit in (3, 10, 40):
        profile = TaskProfile(
            task=drawn.choice(("", "deploy the site", "rotate keys")),
            category=drawn.choice(("", "backend", "nowhere")),
            task_type=drawn.choice(("", "fix")),
            complexity=drawn.choice(list(Complexity)),
        )
        answer = await world.services.learning.recommender.recommend(NS, profile, limit, bound)
        best = await brute_force(world, profile, limit, bound, StructuralWeights())
        assert [one.episode.episode_id for one in answer.similar] == best.ids
        assert [one.score for one in answer.similar] == pytest.approx(best.scores)


@pytest.mark.parametrize(
    "weights",
    [
        StructuralWeights(0.1, 0.1, 0.1, 0.7),
        StructuralWeights(0.0, 0.0, 0.0, 1.0),
        StructuralWeights(0.5, 0.3, 0.2, 0.0),
    ],
)
async def test_other_weights_are_followed_as_exactly(weights):
    world = await filled(9, 150)
    recommender = Recommender(
        world.store, world.embedder, weights, world.services.retention.policies.thresholds
    )
    profile = TaskProfile("deploy the keys", "backend", "fix", Complexity.LOW)
    answer = await recommender.recommend(NS, profile, 10, 0.2)
    best = await brute_force(world, profile, 10, 0.2, weights)
    assert [one.episode.episode_id for one in answer.similar] == best.ids


async def test_the_embedded_store_gives_the_best_as_well(edge):
    """Its cosines have 24 bits, so equal scores may come in another order."""
    world = await filled(11, 250, edge)
    profile = TaskProfile("deploy the site", "backend", "fix", Complexity.LOW)
    every = await brute_force(world, profile, 250, 0.0, StructuralWeights())
    scores = dict(zip(every.ids, every.scores, strict=True))
    for limit, bound in ((3, 0.3), (40, 0.0), (40, 0.25), (100, 0.45)):
        answer = await world.services.learning.recommender.recommend(NS, profile, limit, bound)
        found = [one.episode.episode_id for one in answer.similar]
        best = [score for score in every.scores[:limit] if score >= bound]
        assert [scores[name] for name in found] == pytest.approx(best, abs=1e-6)
        assert len(set(found)) == len(found)
        told = [one.score for one in answer.similar]
        assert told == pytest.approx([scores[name] for name in found], abs=1e-6)


async def test_equals_of_another_group_count_as_well():
    world = await open_world()
    for number in range(20):
        await record(world, f"old{number}", category="ops", complexity=Complexity.HIGH)
    await record(world, "new", task_type="fix", complexity=Complexity.LOW)
    weights = StructuralWeights(0.5, 0.3, 0.2, 0.0)
    recommender = Recommender(
        world.store, world.embedder, weights, world.services.retention.policies.thresholds
    )
    for task in ("", "t"):
        profile = TaskProfile(task, "ops", "fix", Complexity.LOW)
        answer = await recommender.recommend(NS, profile, 10)
        assert [one.episode.episode_id for one in answer.similar[:2]] == ["new", "old19"]


@pytest.mark.parametrize("embedded", [False, True])
async def test_of_a_task_that_recurs_the_newest_count(embedded, edge):
    world = await open_world(edge if embedded else None)
    for number in range(40):
        await record(world, f"e{number}", category="ops", approach=f"a{number // 30}")
    found = await recommended(world, task="t", category="ops")
    assert found.ids == [f"e{number}" for number in range(39, 29, -1)]
    answer = await world.services.learning.recommender.recommend(
        NS, TaskProfile(task="t", category="ops"), 3
    )
    assert answer.recommendations.approach == "a1"
    assert len(answer.similar) == 3
    assert answer.recommendations.similar_count == 10


async def test_failed_and_running_ones_and_other_namespaces_do_not_count():
    world = await open_world()
    await record(world, "bad", category="ops", status=EpisodeStatus.FAILED)
    await record(world, "theirs", category="ops", namespace="other")
    start = EpisodeStart("t", category="ops")
    await world.services.episodes.creator.start(NS, EpisodeDraft(start, "running"))
    assert (await recommended(world, task="t", category="ops")).ids == []
    await record(world, "good", category="ops")
    assert (await recommended(world, task="t", category="ops")).ids == ["good"]


async def test_the_threshold_is_three_tenths_unless_asked_or_set():
    world = await open_world()
    await record(world, "type", "water the garden", task_type="fix", complexity=Complexity.HIGH)
    await record(world, "complexity", "water the garden", complexity=Complexity.LOW)
    task: dict[str, Any] = {
        "task": "rotate signing keys",
        "task_type": "fix",
        "complexity": Complexity.LOW,
    }
    assert (await recommended(world, **task)).ids == ["type"]
    assert (await recommended(world, min_score=0.2, **task)).ids == ["type", "complexity"]
    assert (await recommended(world, min_score=0.5, **task)).ids == []

    async def thresholds(namespace: str) -> tuple[float, float]:
        assert namespace == NS
        return 0.2, 2.5

    own = Recommender(world.store, world.embedder, StructuralWeights(), thresholds)
    answer = await own.recommend(NS, TaskProfile(**task), 10)
    assert answer.recommendations.similar_count == 2
    assert answer.recommendations.confidence == 0.5


async def test_what_was_not_said_is_like_nothing():
    world = await open_world()
    await record(world, "bare", "water the garden")
    assert (await recommended(world, task="rotate signing keys")).ids == []


async def test_one_that_is_deleted_meanwhile_is_left_out(monkeypatch):
    world = await open_world()
    for name in ("a", "b"):
        await record(world, name, category="ops")
    [gone] = [
        row.id for row in await rows(world.store, EPISODES) if row.payload["episode_id"] == "a"
    ]
    get = world.store.get

    async def without(collection, namespace, ids, **named):
        return await get(collection, namespace, [one for one in ids if one != gone], **named)

    monkeypatch.setattr(world.store, "get", without)
    assert (await recommended(world, task="t", category="ops")).ids == ["b"]


async def test_one_embedding_and_no_more_searches_than_can_matter(monkeypatch):
    world = await filled(1, 60)
    searches, embedded = [], []
    search, embed = world.store.search, world.embedder.embed_query

    async def searched(collection, namespace, queries, rescore=None):
        searches.extend(queries)
        return await search(collection, namespace, queries, rescore)

    async def embed_query(text):
        embedded.append(text)
        return await embed(text)

    monkeypatch.setattr(world.store, "search", searched)
    monkeypatch.setattr(world.embedder, "embed_query", embed_query)
    await recommended(world, limit=60, task="unheard of", category="backend", task_type="fix")
    # By meaning, and by what agrees, but that nothing in common but the text cannot reach .3; then
    # failures that are as similar.
    assert len(searches) == 1 + 7 + 5
    assert embedded == ["unheard of"]
    for number in range(11):
        await record(world, f"same{number}", category="x", task_type="y")
    searches.clear()
    found = await recommended(world, task="t", category="x", task_type="y")
    assert found.ids == [f"same{number}" for number in range(10, 0, -1)]
    # By meaning, then the group that agrees in all and in it the newest of equals; then failures
    # that are as similar.
    assert len(searches) == 3 + 2
