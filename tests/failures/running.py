"""Planted failures recorded through the services, analysed, and how well the groups meet them."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.failures.group import FailureAnalysis
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.ports import Embedder
from lot_grpc.services.build import Services
from lot_grpc.services.episodes.failed_episode_reader import FailedEpisodeReader
from tests.failures.made import Planted, Quality, quality
from tests.services.world import NS, World, open_world

EVERY = EpisodeFilter()


async def open_planted(embedder: Embedder, episodes: Sequence[Planted]) -> World:
    """A world with such episodes."""
    world = await open_world(embedder=embedder)
    await record(world.services, episodes)
    return world


async def record(services: Services, episodes: Sequence[Planted], namespace: str = NS) -> None:
    """Record them one after the other."""
    for one in episodes:
        await services.episodes.creator.record(namespace, one.draft)


async def judged(world: World, episodes: Sequence[Planted]) -> Quality:
    """How well the parts of an analysis meet the causes."""
    failures = await FailedEpisodeReader(world.store).newest(NS, EVERY)
    parted = await world.services.episodes.failures.parted(failures)
    cause_of = {one.draft.episode_id: one.cause for one in episodes if one.cause is not None}
    parts = [[failure.episode_id for failure in part] for part in parted.parts]
    assert sorted(name for part in parts for name in part) == sorted(cause_of)
    return quality(parts, cause_of)


async def analyze(world: World) -> FailureAnalysis:
    """All groups."""
    return await world.services.episodes.failures.analyze(NS, EVERY, 100)
