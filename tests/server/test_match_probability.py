"""match_probability on the wire, wherever a hit has one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.episodes import SUCCEEDED
from tests.server.service import Lot, serving
from tests.services.world import CalibratedDouble

TASK, OPPOSITE = "Enable backups of the orders database", "Disable backups of the orders database"


async def hits(lot: Lot) -> list[Any]:
    """Of each call that finds patterns or episodes, those for ``TASK`` and for ``OPPOSITE``."""
    for name, task in (("same", TASK), ("opposite", OPPOSITE)):
        await lot.patterns.SavePattern(pattern={"task": task}, pattern_id=name)
        await lot.episodes.RecordEpisode(
            episode={"task": task, "status": SUCCEEDED}, episode_id=name
        )
    recalled = await lot.patterns.RecallPatterns(query=TASK)
    episodes = await lot.episodes.RecallEpisodes(query=TASK)
    context = await lot.memories.GetTaskContext(task=TASK, min_similarity=0)
    advised = await lot.learning.GetRecommendations(task=TASK)
    found = [recalled.hits, episodes.hits, context.patterns, context.episodes]
    found.append(advised.similar_episodes)
    assert all(len(one) == 2 for one in found)
    return [hit for one in found for hit in one]


def task_of(hit: Any) -> Any:
    return hit.pattern.task if hasattr(hit, "pattern") else hit.episode.task


async def test_the_same_task_is_likely_and_its_opposite_is_not():
    async with serving(embedder=CalibratedDouble()) as lot:
        for hit in await hits(lot):
            assert hit.HasField("match_probability")
            assert (hit.match_probability > 0.8) == (task_of(hit) == TASK)
            assert (hit.match_probability < 0.2) == (task_of(hit) == OPPOSITE)


async def test_with_another_model_it_is_not_known(lot):
    if lot.own_clock is None:
        pytest.skip("needs a server that embeds with the double")
    for hit in await hits(lot):
        assert not hit.HasField("match_probability")


async def test_without_a_task_to_compare_it_is_not_known():
    async with serving(embedder=CalibratedDouble()) as lot:
        await lot.episodes.RecordEpisode(
            episode={"task": TASK, "category": "db", "status": SUCCEEDED}
        )
        advised = await lot.learning.GetRecommendations(category="db")
        [hit] = advised.similar_episodes
        assert not hit.HasField("match_probability")
