"""Recurring failures: failed episodes grouped by error signature and by meaning.

Nothing is stored apart from the episodes. Equal signatures are one error; the most frequent errors
are embedded, and merged if they mean the same.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from lot_grpc.domain.extraction.digest import ErrorSeen
from lot_grpc.domain.failures.failure import Failure
from lot_grpc.domain.failures.group import FailureAnalysis, FailureGroup, group_of, in_order
from lot_grpc.domain.failures.named import named_kinds
from lot_grpc.domain.failures.share_trend import Timeline
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.ports import Embedder, VectorStore
from lot_grpc.services.episodes.failed_episode_reader import FailedEpisodeReader, failed_where
from lot_grpc.services.episodes.failure_grouping import grouped
from lot_grpc.services.episodes.failure_landscape import FailureLandscape, in_plain_words
from lot_grpc.services.episodes.good_runs import GoodRuns
from lot_grpc.services.records.collections import EPISODES
from lot_grpc.services.time_slice import TimeSlice

MOST_COMPARED: Final = 2_000
"""How many signatures, the most frequent, are compared by meaning."""

DEFAULT_GROUPS: Final = 10

_LARGE = 200
"""Groups of at least this many failures are assembled in a thread."""


@dataclass(frozen=True, slots=True)
class Parted:
    """Failures by cause; ``compared_count`` of ``signature_count`` were compared by meaning."""

    parts: list[list[Failure]]
    signature_count: int
    compared_count: int


class FailureAnalyzer:
    """Analyses the failures of all namespaces."""

    def __init__(self, store: VectorStore, embedder: Embedder) -> None:
        self._store = store
        self._reading = FailedEpisodeReader(store)
        self._landscape = FailureLandscape(embedder)
        self._good_runs = GoodRuns(store)

    async def analyze(
        self, namespace: str, criteria: EpisodeFilter, limit: int, similarity: float | None = None
    ) -> FailureAnalysis:
        """The groups of the failed episodes that match a filter, at most ``limit``.

        ``similarity``: the threshold for merging errors; None is the measured default, 1 merges
        none with different signatures.
        """
        failures = await self._reading.newest(namespace, criteria)
        if not failures:
            return FailureAnalysis()
        count = await self._store.count(EPISODES, namespace, failed_where(criteria))
        parted = await self.parted(failures, similarity)
        groups = await _groups(parted.parts, failures)
        return FailureAnalysis(
            groups=tuple(await self._with_good_runs(namespace, groups[:limit])),
            group_count=len(groups),
            failed_count=max(count, len(failures)),  # some may be deleted since they were read
            analyzed_count=len(failures),
            signature_count=parted.signature_count,
            compared_signature_count=parted.compared_count,
        )

    async def parted(self, failures: Sequence[Failure], similarity: float | None = None) -> Parted:
        """Failures by cause, each in one part; those without an error form one part."""
        by_signature: defaultdict[str, list[Failure]] = defaultdict(list)
        for failure in failures:
            by_signature[failure.signature].append(failure)
        silent = by_signature.pop("", [])
        ranked = sorted(by_signature, key=lambda one: (-len(by_signature[one]), one))
        errors = [by_signature[one] for one in ranked]
        compared = errors[:MOST_COMPARED]
        if similarity is not None and similarity >= 1:
            compared = []
        plainest = [_plainest(theirs) for theirs in compared]
        words = await in_plain_words(plainest)
        named, time_slice = [], TimeSlice(rest=1.0)
        for plain, error in zip(words, plainest, strict=True):
            named.append(named_kinds(plain, error.message))
            await time_slice.give_way()
        vectors = await self._landscape.vectors(words)
        groups = await grouped(vectors, [len(theirs) for theirs in compared], similarity, named)
        merged = [[failure for at in group for failure in errors[at]] for group in groups]
        parts = [*merged, *errors[len(compared) :], *([silent] if silent else [])]
        return Parted(parts, len(errors), len(compared))

    async def _with_good_runs(
        self, namespace: str, groups: Sequence[FailureGroup]
    ) -> list[FailureGroup]:
        examples = [group.example_episode_ids for group in groups]
        runs = await self._good_runs.last(namespace, examples)
        return [replace(group, last_good=run) for group, run in zip(groups, runs, strict=True)]


async def _groups(
    parts: Sequence[Sequence[Failure]], failures: Sequence[Failure]
) -> list[FailureGroup]:
    """The groups in order. ``failures``: those of all groups."""
    timeline = Timeline([failure.end_time for failure in failures])
    groups, time_slice = [], TimeSlice(rest=1.0)
    for part in parts:
        if len(part) > _LARGE:
            group = await asyncio.to_thread(group_of, part, timeline, len(failures))
        else:
            group = group_of(part, timeline, len(failures))
        groups.append(group)
        await time_slice.give_way()
    return in_order(groups)


def _plainest(failures: Sequence[Failure]) -> ErrorSeen:
    """The representative error of a signature: the shortest, of equals the first by name.

    Not the newest one, so that another failure does not change the other groups.
    """
    errors = {failure.error for failure in failures}
    return min(errors, key=lambda one: (len(one.message), one.message, one.type))
