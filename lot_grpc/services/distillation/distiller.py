"""Distillation: each group of similar patterns gets a pattern that generalises them.

In order: the existing groups are read; ungrouped patterns are clustered together with them
(``clustering``); heads are made and embedded; inner heads are written before outer ones, and then
the members are marked. A head names its members, so a run that dies in between is completed by the
next: it finds the same groups under the same ids and marks the remaining members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from lot_grpc.domain.distillation import (
    DEFAULT_GROUP_SIZE,
    DEFAULT_SIMILARITY,
    LEAST_GROUP_SIZE,
    LEVEL_STEP,
    MOST_SOURCES,
    GroupSummary,
    best_members,
    confidence_of,
    generalised,
    summed,
)
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.origin import BY_SERVER, OriginKind, review_of_new
from lot_grpc.domain.pattern import Pattern, PatternContent
from lot_grpc.domain.query import PatternFilter
from lot_grpc.ports import VectorStore
from lot_grpc.services.distillation.groups import Group, regroup, survey
from lot_grpc.services.distillation.heads import Heads, remade
from lot_grpc.services.indexer import Indexer
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.records.groups import (
    LEVEL,
    head_id,
)
from lot_grpc.services.records.origin import held_back
from lot_grpc.services.records.patterns import (
    pattern_conditions,
    pattern_from_record,
    pattern_point,
)
from lot_grpc.services.retention.policies import Policies
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource

_LONG = 4_000
"""Characters of tasks in a group from which on its template is made in a thread."""


@dataclass(frozen=True, slots=True)
class DistillDefaults:
    """Defaults of a call, from the settings."""

    similarity: float = DEFAULT_SIMILARITY
    min_group_size: int = DEFAULT_GROUP_SIZE


@dataclass(frozen=True, slots=True)
class DistillRequest:
    """What to distil. ``min_group_size`` 0 and ``similarity`` None are the defaults."""

    narrowed: PatternFilter = field(default_factory=PatternFilter)
    min_group_size: int = 0
    similarity: float | None = None
    dry_run: bool = False

    def check(self) -> None:
        """Raise RequestInvalidError if the request is invalid."""
        if 0 < self.min_group_size < LEAST_GROUP_SIZE:
            raise invalid(
                "min_group_size",
                "min_group_size.least",
                f"must be at least {LEAST_GROUP_SIZE}, since one pattern cannot be generalized; 0 "
                "means the default",
            )


@dataclass(frozen=True, slots=True)
class DistilledGroup:
    """A group as it is, or would be, afterwards. ``member_ids``: all its members, oldest first."""

    pattern: Pattern
    member_ids: list[str]
    groups: list[DistilledGroup]
    size: int
    """Patterns below it."""


@dataclass(frozen=True, slots=True)
class Distilled:
    """The groups at the top that hold what was looked at, the largest first, and counts."""

    groups: list[DistilledGroup]
    looked_at: int
    left_out: int
    created: int
    extended: int


class Distiller:
    """Distils the patterns of a namespace."""

    def __init__(
        self,
        store: VectorStore,
        indexer: Indexer,
        time_source: TimeSource,
        policies: Policies,
        defaults: DistillDefaults | None = None,
    ) -> None:
        self._store = store
        self._time = time_source
        self._heads = Heads(store, indexer, time_source)
        self._policies = policies
        self._defaults = defaults or DistillDefaults()

    async def distil(self, namespace: str, request: DistillRequest) -> Distilled:
        """Group and generalise. Raises RequestInvalidError, ContentionError."""
        request.check()
        similarity = self._defaults.similarity if request.similarity is None else request.similarity
        least = request.min_group_size or self._defaults.min_group_size
        narrowed = request.narrowed
        if narrowed.superseded is None:
            narrowed = replace(narrowed, superseded=False)
        land = await survey(self._store, namespace, pattern_conditions(narrowed))
        review_origins = await self._policies.review_origins(namespace)
        made_held_back = BY_SERVER.kind in review_origins
        groups = await regroup(
            self._store, namespace, land, similarity, least, made_held_back=made_held_back
        )
        await self._name(namespace, groups)
        run = _Run(namespace, similarity, review_origins, TimeSlice(rest=1.0))
        changed = []
        for group in groups:
            if await self._make(run, group):
                changed.append(group)
            await run.time_slice.give_way()
        if request.dry_run:
            _assume_marks(groups)
        else:
            await self._heads.write(namespace, changed, review_origins)
            for group in groups:
                await self._heads.mark(namespace, group, run.time_slice)
        top = [
            _result(group)
            for group in groups
            if group.parent is None and not group.made_of.isdisjoint(land.looked_at)
        ]
        top.sort(key=lambda group: (-group.size, group.pattern.pattern_id))
        created = sum(group.head is None for group in groups)
        extended = sum(group.extended for group in groups)
        return Distilled(top, len(land.looked_at), land.left_out, created, extended)

    async def _name(self, namespace: str, groups: Sequence[Group]) -> None:
        """Give new groups the id of their oldest member whose id is free."""
        taken = {group.pattern_id for group in groups}
        for group in groups:
            if group.head is not None:
                continue
            for anchor in group.anchors:
                preferred = head_id(group.level, anchor)
                point = pattern_point(namespace, preferred)
                there = (await self._store.get(PATTERNS, namespace, [point])).get(point)
                # A head that is there meanwhile is another process's for the same group.
                if preferred not in taken and (there is None or LEVEL in there.payload):
                    group.pattern_id = preferred
                    taken.add(preferred)
                    break

    # --- making -------------------------------------------------------------------------------

    async def _make(self, run: _Run, group: Group) -> bool:
        """Make the head of a group, its inner groups' being made; False if it stays as it is."""
        if group.head is not None:
            stored = pattern_from_record(group.head)
            group.pattern = stored
            named = set(stored.content.source_pattern_ids)
            missing = len(named) < MOST_SOURCES and not named.issuperset(group.anchors)
            if not (group.extended or missing):
                return False
        elif not group.pattern_id:
            return False
        outcomes = summed(
            [one.outcomes for one in group.members]
            + [below.pattern.outcomes for below in group.groups if below.pattern]
        )
        summary = GroupSummary(
            tuple(group.anchors),
            len(group.anchors),
            group.level,
            round(run.similarity - LEVEL_STEP * (group.level - 1), 6),
        )
        made = await _generalised(await self._best_of(run.namespace, group), summary)
        if group.head is not None:
            group.pattern = remade(group.head, made, run.review_origins)
            return group.pattern != pattern_from_record(group.head)
        now = self._time.now()
        content = replace(
            made,
            confidence=confidence_of(outcomes),
            parent_pattern_id=group.parent.pattern_id if group.parent else "",
        )
        review = review_of_new(content.origin, run.review_origins)
        pattern_id = group.pattern_id
        group.pattern = Pattern(
            run.namespace, pattern_id, content, outcomes, 1, now, now, review=review
        )
        return True

    async def _best_of(self, namespace: str, group: Group) -> list[Pattern]:
        """The members that the template is made from, the oldest first."""
        if group.level > 1:
            below = sorted(group.groups, key=lambda one: one.age)
            return best_members([one.pattern for one in below if one.pattern])
        members = sorted(group.members, key=lambda one: one.age)
        blank = PatternContent("")
        ranked = best_members(
            [Pattern(namespace, m.pattern_id, blank, m.outcomes, 0, 0, 0) for m in members]
        )
        points = [pattern_point(namespace, one.pattern_id) for one in ranked]
        found = await self._store.get(PATTERNS, namespace, points)
        records = [found[point] for point in points if point in found]
        return [pattern_from_record(one) for one in records if not held_back(one.payload)]


@dataclass(frozen=True, slots=True)
class _Run:
    namespace: str
    similarity: float
    review_origins: Collection[OriginKind]
    time_slice: TimeSlice


async def _generalised(members: Sequence[Pattern], summary: GroupSummary) -> PatternContent:
    if sum(len(member.content.task) for member in members) > _LONG:
        return await asyncio.to_thread(generalised, members, summary)
    return generalised(members, summary)


def _assume_marks(groups: Sequence[Group]) -> None:
    """Let inner heads name the groups that they would get."""
    for group in groups:
        if group.parent is not None and group.pattern is not None:
            content = replace(group.pattern.content, parent_pattern_id=group.parent.pattern_id)
            group.pattern = replace(group.pattern, content=content)


def _result(group: Group) -> DistilledGroup:
    assert group.pattern is not None
    below = sorted(group.groups, key=lambda one: (-one.size, one.pattern_id))
    return DistilledGroup(
        group.pattern, group.anchors, [_result(one) for one in below if one.pattern], group.size
    )
