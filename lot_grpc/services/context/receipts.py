"""Records what each context showed, in one retrieval."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from lot_grpc.domain.context.failing import TaskWarning
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.retrieval import RetrievalMethod, RetrievalOptions, RetrievedItem
from lot_grpc.services.changes.watcher import ChangeWatcher
from lot_grpc.services.context.likely import NearHits
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.learning.recommendations import Recommended
from lot_grpc.services.retrievals.retrievals import BegunRetrieval
from lot_grpc.services.runtime import Runtime


class ContextReceipts:
    """Records contexts, and notifies those who watch."""

    def __init__(self, runtime: Runtime, change_watcher: ChangeWatcher) -> None:
        self._retrievals = runtime.retrievals
        self._change_watcher = change_watcher

    async def begin(self, namespace: str) -> BegunRetrieval:
        """Begin a context."""
        return await self._retrievals.begin(namespace)

    def record(
        self,
        begun: BegunRetrieval,
        request: ContextRequest,
        vector: Sequence[float],
        near: NearHits,
        warnings: Sequence[TaskWarning],
        recommended: Recommended,
    ) -> str:
        """Record what a context shows; return its retrieval_id."""
        retrieval = self._retrievals.remember(
            begun,
            RetrievalMethod.GET_TASK_CONTEXT,
            request.task,
            vector,
            _items(near, warnings, recommended),
            RetrievalOptions(
                ranking=Ranking.BALANCED,
                limit=request.limit,
                min_similarity=request.min_similarity or 0.0,
                min_match=request.min_match,
                holdout=begun.holdout,
            ),
        )
        self._change_watcher.suggested(
            begun.namespace,
            retrieval.query,
            [hit.thing.pattern_id for hit in near.patterns.hits],
            [hit.thing.episode_id for hit in near.episodes],
            retrieval.retrieval_id,
        )
        return retrieval.retrieval_id


def _items(
    near: NearHits, warnings: Sequence[TaskWarning], recommended: Recommended
) -> list[RetrievedItem]:
    """Every record shown, each once, including the episodes that are only cited."""
    cited = {*chain.from_iterable(one.episode_ids for one in warnings)}
    items = [
        *(hit.item() for hit in near.patterns.hits),
        *(hit.item() for hit in near.memories),
        *(hit.item() for hit in near.episodes),
        *(hit.item() for hit in near.errors),
        *(hit.item() for hit in near.failures if hit.thing.episode_id in cited),
        *(one.item() for one in recommended.similar),
    ]
    shown: dict[ResourceRef, RetrievedItem] = {}
    for item in items:
        shown.setdefault(item.resource, item)
    return list(shown.values())
