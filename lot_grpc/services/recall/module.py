"""Recall of patterns, episodes and memories."""

from __future__ import annotations

from dataclasses import replace

from lot_grpc.domain.ranking import IMPORTANCE, RankingWeights
from lot_grpc.services.changes.watcher import ChangeWatcher
from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.memories.module import MemoriesModule
from lot_grpc.services.recall.learned_tasks import LearnedTasks
from lot_grpc.services.recall.recall import Recall
from lot_grpc.services.recall.reranks import Reranks
from lot_grpc.services.recall.search_target import SearchTarget, T
from lot_grpc.services.recall.targets import episode_target, memory_target, pattern_target
from lot_grpc.services.runtime import Runtime


class RecallModule:
    """The recall of each kind, and the matching of LEARNED patterns to queries."""

    def __init__(
        self,
        runtime: Runtime,
        episodes: Episodes,
        memories: MemoriesModule,
        watcher: ChangeWatcher,
    ) -> None:
        """``watcher`` is notified of the patterns found."""
        store, weights = runtime.store, runtime.settings.weights
        reranks = Reranks(store, runtime.reranker, runtime.settings.rerank)

        def recall(target: SearchTarget[T], ranked: RankingWeights = weights) -> Recall[T]:
            return Recall(store, runtime.model, runtime.retrievals, reranks, ranked, target)

        self.learned_tasks = LearnedTasks(store)
        self.patterns = recall(pattern_target(runtime, self.learned_tasks, watcher))
        self.episodes = recall(episode_target(runtime, episodes))
        target = memory_target(runtime, memories.memories, memories.passages)
        self.memories = recall(target, replace(weights, importance=IMPORTANCE))
