"""The real services as a learner, and the pools they rank."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from lot_grpc.bootstrap import Opened, open_all
from lot_grpc.domain.fusion import FusionWeights
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import RankingWeights, pool_size
from lot_grpc.reports import Progress
from lot_grpc.services.recall.search import HybridSearch, SearchRequest
from lot_grpc.services.recall.targets import RecallOptions
from lot_grpc.settings import Settings
from tests.learn.tasks import TaskSet

LIMIT = 5
"""Hits of a recall, as by default. The first is taken."""
_BATCH = 64
_POOLS = "pools"
_CACHED_TEXTS = 100_000
"""The same queries come again and again: each is embedded once."""


@asynccontextmanager
async def opened(
    settings: Settings, folder: Path, progress: Progress | None
) -> AsyncIterator[Opened]:
    """All that serves but the port, over an empty embedded store in ``folder``.

    Raises:
        StartupError: The model or the store cannot be opened.
    """
    data = {"store": "edge", "data_dir": folder, "sync": "off", "maintenance": "off"}
    cached = {"cache_entries": _CACHED_TEXTS}
    alone = settings.model_copy(
        update={
            "storage": settings.storage.model_copy(update=data),
            "embedding": settings.embedding.model_copy(update=cached),
        }
    )
    async with open_all(alone, progress) as done:
        yield done


@dataclass(frozen=True)
class Near:
    """A hit of a pool: a pattern by number, how relevant it is, and its importance if any."""

    pattern: int
    relevance: float
    importance: float | None = None


@dataclass(frozen=True)
class Pools:
    """For each query its vector and what a recall ranks, the most relevant first."""

    hits: tuple[tuple[Near, ...], ...]
    vectors: tuple[Sequence[float], ...]

    def leader(self, query: int, margin: float) -> int | None:
        """The hit that leads by more than the margin."""
        first, *others = self.hits[query] or (None,)
        if first is None or (others and first.relevance - others[0].relevance <= margin):
            return None
        return first.pattern


async def save_all(serving: Opened, namespace: str, tasks: TaskSet) -> None:
    """Save what is stored, each under its number."""
    for start in range(0, len(tasks.stored), _BATCH):
        batch = list(enumerate(tasks.stored))[start : start + _BATCH]
        contents = {_id(number): content for number, content in batch}
        await tasks.kind.save(serving.services, namespace, contents)


async def read_pools(serving: Opened, tasks: TaskSet, progress: Progress) -> Pools:
    """The pools, by the search that recall makes. What was learned does not change them."""
    kind = tasks.kind
    await save_all(serving, _POOLS, tasks)
    points = {kind.point(_POOLS, _id(one)): one for one in range(len(tasks.stored))}
    searching = HybridSearch(
        serving.store, serving.embedder, kind.spec.collection.search_fields, FusionWeights()
    )
    hits, vectors = [], []
    for number, query in enumerate(tasks.queries):
        progress(f"searching {kind}", number, len(tasks.queries))
        request = kind.request(RecallOptions(query, LIMIT), tasks.filters[number])
        search = SearchRequest(query, request.where, pool_size(LIMIT))
        found = await searching.search(_POOLS, search)
        numbers = [points[one.id] for one in found.found]
        hits.append(
            tuple(
                Near(one, relevance.value, kind.importance(_id(one)))
                for one, relevance in zip(numbers, found.found, strict=True)
            )
        )
        vectors.append(found.vector)
    progress(f"searching {kind}", len(tasks.queries), len(tasks.queries))
    return Pools(tuple(hits), tuple(vectors))


async def weights_told(serving: Opened, tasks: TaskSet) -> RankingWeights:
    """The weights that an answer gives back when asked to explain itself."""
    options = RecallOptions(tasks.queries[0], LIMIT, explain=True)
    request = tasks.kind.request(options, tasks.filters[0])
    answer = await tasks.kind.find(serving.services, _POOLS, request)
    assert answer.explanation is not None
    return answer.explanation.weights


class Served:
    """A ``Learner``: recall, and outcomes with the retrieval's id, in a namespace of its own.

    ``checked`` counts the recalls in which a hit led by more than the margin, ``overtaken`` those
    in which another came first.
    """

    def __init__(
        self,
        serving: Opened,
        namespace: str,
        ranking: Ranking,
        tasks: TaskSet,
        pools: Pools,
        margin: float,
    ) -> None:
        self._services = serving.services
        self._namespace = namespace
        self._ranking = ranking
        self._tasks = tasks
        self._leaders = [pools.leader(query, margin) for query in range(len(tasks.queries))]
        self._retrieval_id = ""
        self.checked = 0
        self.overtaken = 0

    async def first(self, query: int, seed: int) -> int | None:
        options = RecallOptions(self._tasks.queries[query], LIMIT, ranking=self._ranking, seed=seed)
        kind = self._tasks.kind
        request = kind.request(options, self._tasks.filters[query])
        answer = await kind.find(self._services, self._namespace, request)
        self._retrieval_id = answer.retrieval_id
        first = _number(kind.ids(answer)[0]) if answer.hits else None
        leader = self._leaders[query]
        if leader is not None:
            self.checked += 1
            self.overtaken += first != leader
        return first

    async def took(self, query: int, seed: int) -> int | None:
        return await self.first(query, seed)

    async def tell(self, query: int, pattern: int, *, success: bool) -> None:
        outcome = Outcome.SUCCESS if success else Outcome.FAILURE
        draft = self._tasks.kind.outcome([_id(pattern)], outcome, retrieval_id=self._retrieval_id)
        await self._services.outcomes.recorder.record(self._namespace, draft)


def _id(number: int) -> str:
    return f"p{number}"


def _number(pattern_id: str) -> int:
    return int(pattern_id.removeprefix("p"))
