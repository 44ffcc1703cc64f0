"""The existing groups of a namespace, and what a run makes of them.

What is held back by its review is no member of any group, and a group whose head is held back is no
member of a group above.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from lot_grpc.domain.distillation import LEAST_GROUP_SIZE, LEVEL_STEP, LEVELS
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.wording import MOST_CHARACTERS
from lot_grpc.ports import AnyOf, Condition, Missing, Not, Range, Record, VectorStore
from lot_grpc.services.distillation.clustering import Floats, Unit, clusters
from lot_grpc.services.distillation.likeness import Tasks, likeness_by_words
from lot_grpc.services.records.collections import PATTERNS, TEXT_VECTOR
from lot_grpc.services.records.groups import (
    KEY,
    LEVEL,
    PARENT,
    SEEN_KEYS,
    Seen,
    is_head_id,
    seen,
)
from lot_grpc.services.records.origin import RECALLABLE, held_back
from lot_grpc.services.records.patterns import pattern_point
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice

MOST_LOOKED_AT: Final = 5000
"""Ungrouped patterns of one kind, type and language in a run: the similarities of this many take
300 MB."""

_BATCH = 32


@dataclass(slots=True)
class Group:
    """A group: existing (``head``) or to be created.

    ``members`` are patterns (level 1), ``groups`` groups (above). ``total`` is the sum of the unit
    vectors of all ``size`` patterns below it. ``tasks`` has one task per member (for a group, that
    of its oldest member) and how many patterns it represents.
    """

    level: int
    key: str
    head: Record | None = None
    members: list[Seen] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    total: Floats = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    size: int = 0
    tasks: list[tuple[str, int]] = field(default_factory=list)
    pattern_id: str = ""
    parent: Group | None = None
    pattern: Pattern | None = None
    extended: bool = False

    @property
    def unit(self) -> Unit:
        """The group as an item to cluster."""
        return Unit(_mean(self.total, self.size), self.size)

    @property
    def age(self) -> tuple[int, str]:
        """Of its oldest member: orders the oldest first."""
        return min(one.age for one in self._direct)

    @property
    def anchors(self) -> list[str]:
        """Ids of its members, the oldest first."""
        return [one.pattern_id for one in sorted(self._direct, key=lambda one: one.age)]

    @property
    def task(self) -> str:
        """That of its oldest member."""
        return min(zip(self._direct, self.tasks, strict=True), key=lambda one: one[0].age)[1][0]

    def may_be_member(self, *, made_held_back: bool) -> bool:
        """Whether a group above may generalise its head.

        ``made_held_back``: what a run makes is held back, and so is a head that it made or remakes.
        """
        if self.head is None:
            return not made_held_back
        return not held_back(self.head.payload) and not (self.extended and made_held_back)

    @property
    def _direct(self) -> list[Seen | Group]:
        return [*self.members, *self.groups]

    @property
    def made_of(self) -> set[str]:
        """The patterns below it."""
        below = {one.pattern_id for one in self.members}
        return below.union(*(group.made_of for group in self.groups))

    def take(self, part: Part) -> None:
        """Add a member."""
        if isinstance(part.member, Seen):
            self.members.append(part.member)
        else:
            self.groups.append(part.member)
            part.member.parent = self
        self.tasks.append((part.task, part.size))
        self.total = part.total if self.size == 0 else self.total + part.total
        self.size += part.size


@dataclass(frozen=True, slots=True)
class Part:
    """What may become a member, with the sum of the vectors of all ``size`` patterns below it."""

    member: Seen | Group
    total: Floats
    size: int
    task: str


def _part(group: Group) -> Part:
    return Part(group, group.total, group.size, group.task)


@dataclass(slots=True)
class Landscape:
    """The groups of each level and what was looked at. ``loose``: in no group, the oldest first."""

    heads: dict[str, Record]
    looked_at: dict[str, Seen]
    members: dict[str, list[Seen]]
    loose: list[Seen]
    left_out: int


async def survey(store: VectorStore, namespace: str, where: Sequence[Condition]) -> Landscape:
    """Read the existing groups and the patterns that match ``where``."""
    heads = {
        record.payload["pattern_id"]: record
        async for record in scan(store, PATTERNS, namespace, [Range(LEVEL, gte=1)])
    }
    plain: list[Condition] = [*where, Missing(LEVEL), Not(AnyOf("kind", ("distilled",)))]
    looked_at = await _seen(store, namespace, plain)
    known = dict(looked_at)
    if heads:
        marked: list[Condition] = [Not(Missing(PARENT)), Missing(LEVEL)]
        known |= await _seen(store, namespace, marked)
    named = {
        member: head_id
        for head_id, head in heads.items()
        if head.payload[LEVEL] == 1
        for member in head.payload.get("source_pattern_ids", ())
    }
    known |= await _get_seen(store, namespace, [one for one in named if one not in known])
    members: dict[str, list[Seen]] = {head_id: [] for head_id in heads}
    loose: dict[str, list[Seen]] = {}
    for one in sorted(known.values(), key=lambda one: one.age):
        head_id = one.parent if one.parent in heads else named.get(one.pattern_id, "")
        if head_id:
            members[head_id].append(one)
        elif one.pattern_id in looked_at and (not one.parent or is_head_id(one.parent)):
            loose.setdefault(one.key, []).append(one)
    preserved = [one for each in loose.values() for one in _best(each)]
    left_out = sum(map(len, loose.values())) - len(preserved)
    return Landscape(heads, looked_at, members, preserved, left_out)


def _best(loose: list[Seen]) -> list[Seen]:
    """The most reliable, then the newest, in the order given."""
    if len(loose) <= MOST_LOOKED_AT:
        return loose
    ranked = sorted(loose, key=lambda one: (-one.outcomes.reliability, -one.sort_key))
    return sorted(ranked[:MOST_LOOKED_AT], key=lambda one: one.age)


async def _seen(store: VectorStore, namespace: str, where: Sequence[Condition]) -> dict[str, Seen]:
    found = {}
    recallable = [*where, RECALLABLE]
    async for record in scan(store, PATTERNS, namespace, recallable, payload=SEEN_KEYS):
        one = seen(record)
        found[one.pattern_id] = one
    return found


async def _get_seen(
    store: VectorStore, namespace: str, pattern_ids: Sequence[str]
) -> dict[str, Seen]:
    points = [pattern_point(namespace, pattern_id) for pattern_id in pattern_ids]
    found = {}
    for start in range(0, len(points), _BATCH):
        for record in (
            await store.get(PATTERNS, namespace, points[start : start + _BATCH])
        ).values():
            if not held_back(record.payload):
                one = seen(record)
                found[one.pattern_id] = one
    return found


# --- grouping ---------------------------------------------------------------------------------


async def regroup(
    store: VectorStore,
    namespace: str,
    land: Landscape,
    similarity: float,
    least: int,
    *,
    made_held_back: bool,
) -> list[Group]:
    """All groups of the kinds that were looked at, with what now joins them, and the new ones.

    ``made_held_back``: whether heads that are made or remade are held back.
    """
    keys = sorted({one.key for one in land.looked_at.values()})
    groups = []
    for key in keys:
        groups += await _regroup_key(store, namespace, land, key, similarity, least, made_held_back)
    return groups


async def _regroup_key(
    store: VectorStore,
    namespace: str,
    land: Landscape,
    key: str,
    similarity: float,
    least: int,
    made_held_back: bool,
) -> list[Group]:
    loose = [one for one in land.loose if one.key == key]
    heads = {i: head for i, head in land.heads.items() if head.payload[KEY] == key}
    below = [one for i in heads for one in land.members[i]]
    parts = await _parts(store, namespace, [*loose, *below])
    level = [Group(1, key, heads[i], pattern_id=i) for i in sorted(heads) if _level(heads[i]) == 1]
    for group in level:
        for one in land.members[group.pattern_id]:
            if one.pattern_id in parts:
                group.take(parts[one.pattern_id])
    level = [group for group in level if group.size]
    entering = [parts[one.pattern_id] for one in loose if one.pattern_id in parts]
    level = await _join(level, entering, 1, key, similarity, least)
    groups = list(level)
    for number in range(2, LEVELS + 1):
        level = [one for one in level if one.may_be_member(made_held_back=made_held_back)]
        upper = _upper(level, heads, number, key)
        free = [_part(group) for group in level if group.parent is None]
        free.sort(key=lambda one: one.member.age)
        at = max(0.0, similarity - LEVEL_STEP * (number - 1))
        level = await _join(upper, free, number, key, at, LEAST_GROUP_SIZE)
        groups += level
    return groups


def _upper(
    level: Iterable[Group], heads: Mapping[str, Record], number: int, key: str
) -> list[Group]:
    """The existing groups of groups."""
    upper = {
        i: Group(number, key, h, pattern_id=i) for i, h in heads.items() if _level(h) == number
    }
    named = {member: i for i in upper for member in heads[i].payload.get("source_pattern_ids", ())}
    for group in level:
        if group.head is not None:
            parent = str(group.head.payload.get(PARENT, ""))
            parent = parent if parent in upper else named.get(group.pattern_id, "")
            if parent:
                upper[parent].take(_part(group))
    return [upper[i] for i in sorted(upper) if upper[i].size]


def _level(head: Record) -> int:
    return int(head.payload[LEVEL])


async def _join(
    groups: list[Group],
    free: Sequence[Part],
    level: int,
    key: str,
    similarity: float,
    least: int,
) -> list[Group]:
    """The groups with those of the free ones that join them, and groups of ``least`` and more."""
    units = [Unit(group.unit.mean, group.size, fixed=True) for group in groups]
    units += [Unit(_mean(part.total, part.size), part.size) for part in free]
    tasks = [Tasks(group.tasks, fixed=True) for group in groups]
    tasks += [Tasks([(part.task, part.size)], fixed=False) for part in free]
    added = await asyncio.to_thread(likeness_by_words, tasks)
    joined = list(groups)
    for cluster in await clusters(units, similarity, added):
        there = [groups[one] for one in cluster if one < len(groups)]
        new = [free[one - len(groups)] for one in cluster if one >= len(groups)]
        if not new or (not there and len(new) < least):
            continue
        group = there[0] if there else Group(level, key)
        for part in new:
            group.take(part)
        if there:
            group.extended = True
        else:
            joined.append(group)
    return joined


def _mean(total: Floats, size: int) -> Floats:
    mean: Floats = (total / size).astype(np.float32)
    return mean


async def _parts(store: VectorStore, namespace: str, chosen: Sequence[Seen]) -> dict[str, Part]:
    """Patterns with their text vectors and tasks, by id."""
    found: dict[str, Part] = {}
    time_slice = TimeSlice(rest=1.0)
    for start in range(0, len(chosen), _BATCH):
        points = {one.point: one for one in chosen[start : start + _BATCH]}
        records = await store.get(PATTERNS, namespace, list(points), vectors=True)
        for point, record in records.items():
            vector = np.asarray(record.vectors[TEXT_VECTOR], dtype=np.float32)
            task = str(record.payload["task"])[:MOST_CHARACTERS]
            found[points[point].pattern_id] = Part(points[point], vector, 1, task)
        await time_slice.give_way()
    return found
