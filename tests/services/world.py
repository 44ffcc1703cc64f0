"""The services over a store in memory, with a clock that stands still."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lot_grpc.domain.episode import EpisodeEnd, EpisodeEvent, EpisodeStart, EpisodeStatus
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import Pattern, PatternContent
from lot_grpc.domain.query import PatternFilter, Ranking
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.embedding.hashing import HashingEmbedder, OverlapReranker
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.build import Services, build_services
from lot_grpc.services.drafts import PatternDraft, Saved
from lot_grpc.services.episodes import EpisodeDraft
from lot_grpc.services.memories import MemoryDraft
from lot_grpc.services.outcomes import OutcomeDraft
from lot_grpc.services.questions import Asked, pattern_question
from lot_grpc.services.recall import Answer
from lot_grpc.services.reranks import RerankBounds
from lot_grpc.services.store_contract import open_store
from lot_grpc.storage.in_memory import InMemoryStore
from tests.contract.clock import FixedClock

NS = "team"
MINUTE = 60
HOUR = 3600
DAY = 24 * HOUR


class SharedStore(InMemoryStore):
    """A store that other processes may write to as well, as a Qdrant server is."""

    @property
    def exclusive(self) -> bool:
        return False


class Interleaving:
    """A store whose every call lets others go first and afterwards, as a network would."""

    def __init__(self, inner: VectorStore, seed: int = 7) -> None:
        self._inner = inner
        self._random = random.Random(seed)

    @property
    def exclusive(self) -> bool:
        return self._inner.exclusive

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)

        async def interleaved(*given: Any, **named: Any) -> Any:
            await self._wait()
            result = await call(*given, **named)
            await self._wait()
            return result

        return interleaved

    async def _wait(self) -> None:
        for _ in range(self._random.randrange(4)):
            await asyncio.sleep(0)


@dataclass
class World:
    """One process: its services, and the parts they stand on."""

    store: Any
    clock: FixedClock
    services: Services
    embedder: HashingEmbedder = field(default_factory=HashingEmbedder)

    def another_process(self) -> World:
        """A second process, or this one after a restart, over the same store."""
        return World(self.store, self.clock, _services(self.store, self.clock, self.embedder))


def _services(store: Any, clock: FixedClock, embedder: HashingEmbedder) -> Services:
    return build_services(
        store, embedder, OverlapReranker(), clock, RankingWeights(), RerankBounds()
    )


async def open_world(store: Any = None, clock: FixedClock | None = None) -> World:
    """An empty store with all collections, and a process that works on it."""
    clock = clock or FixedClock()
    store = store if store is not None else InMemoryStore(clock)
    embedder = HashingEmbedder()
    await open_store(store, embedder.contract)
    return World(store, clock, _services(store, clock, embedder), embedder)


# --- what is asked of it ----------------------------------------------------------------------


def draft(task: str = "Log in to the site", **named: Any) -> PatternDraft:
    """A pattern to save; what the draft does not know goes into its content."""
    own = {"pattern_id", "initial_success_rate", "request_id", "dedupe", "ttl"}
    return PatternDraft(
        PatternContent(task, **{k: v for k, v in named.items() if k not in own}),
        **{k: v for k, v in named.items() if k in own},
    )


async def save(world: World, task: str = "Log in to the site", **named: Any) -> Saved:
    return await world.services.saving.save(NS, draft(task, **named))


async def outcome(
    world: World, *pattern_ids: str, outcome: Outcome = Outcome.SUCCESS, **named: Any
) -> list[Pattern]:
    draft = OutcomeDraft(pattern_ids, outcome, **named)
    return (await world.services.outcomes.record(NS, draft)).patterns


async def recall(
    world: World,
    query: str,
    *,
    limit: int = 5,
    narrowed: PatternFilter | None = None,
    min_similarity: float = 0.0,
    ranking: Ranking = Ranking.BALANCED,
    explain: bool = False,
) -> Answer[Pattern]:
    asked = Asked(query, limit, min_similarity, ranking, explain=explain)
    question = pattern_question(asked, narrowed or PatternFilter())
    return await world.services.pattern_recall.find(NS, question)


def start(task: str = "Deploy the site", episode_id: str = "", **named: Any) -> EpisodeDraft:
    request_id = named.pop("request_id", "")
    return EpisodeDraft(EpisodeStart(task, **named), episode_id, request_id)


def whole(count: int = 3, episode_id: str = "", request_id: str = "", **named: Any) -> EpisodeDraft:
    """An episode to record in one call."""
    named.setdefault("end", end())
    return EpisodeDraft(
        EpisodeStart("Deploy the site"),
        episode_id,
        request_id,
        events=tuple(event(text=f"step {n}") for n in range(1, count + 1)),
        **named,
    )


def end(status: EpisodeStatus = EpisodeStatus.SUCCEEDED, **named: Any) -> EpisodeEnd:
    return EpisodeEnd(status, **named)


def event(sequence: int = 0, text: str = "") -> EpisodeEvent:
    return EpisodeEvent(sequence, "step", data=(text or f"event {sequence}").encode())


def events(first: int, last: int) -> list[EpisodeEvent]:
    return [event(number) for number in range(first, last + 1)]


def memory(content: str = "The port is 8080", **named: Any) -> MemoryDraft:
    own = {"memory_id", "request_id", "ttl"}
    return MemoryDraft(
        MemoryContent(content, **{k: v for k, v in named.items() if k not in own}),
        **{k: v for k, v in named.items() if k in own},
    )


# --- what lies in the store -------------------------------------------------------------------


async def rows(store: VectorStore, collection: str, namespace: str | None = NS) -> list[Record]:
    """Every record of a collection."""
    return await store.scroll(collection, namespace, [], limit=100_000)


async def payloads(world: World, collection: str) -> list[Mapping[str, Any]]:
    return [record.payload for record in await rows(world.store, collection)]
