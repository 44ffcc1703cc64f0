"""The episodes to learn from: ended ones, newest first, by group."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.extraction.digest import Digest
from lot_grpc.domain.extraction.groups import Group, GroupBy, group_of
from lot_grpc.ports import AnyOf, Condition, Equals, Missing, Record, VectorStore
from lot_grpc.regexes import Regex, compiled
from lot_grpc.services.extraction.digest_reader import DigestReader, words_of
from lot_grpc.services.records.collections import EPISODES, SORT_KEY
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice

MOST_EPISODES = 10_000
"""Of all groups, the newest ones: what can be read within a call's minute."""

MOST_OF_GROUP = 2_000
"""Of one group, the newest ones: enough for any statistic, and old ways are forgotten."""

MOST_OTHERS = 1_000
"""Newest episodes among which tasks of other groups are sought."""

_BATCH = 50
_ENDED = AnyOf("status", (EpisodeStatus.SUCCEEDED.value, EpisodeStatus.FAILED.value))
_LIGHT = ("task", "task_type", "category")


@dataclass(slots=True)
class Members:
    """A group's episodes: the newest as (sort key, namespace, point), and how many in all."""

    newest: list[tuple[int, str, str]] = field(default_factory=list)
    count: int = 0

    def add(self, record: Record) -> None:
        """One more, in the order of a namespace's scan."""
        self.count += 1
        if self.count <= MOST_OF_GROUP:
            self.newest.append((record.payload[SORT_KEY], record.namespace, record.id))


@dataclass(slots=True)
class Gathered:
    """What was found. ``tasks``: the newest, as (sort key, task, group), for contrast."""

    groups: dict[Group, Members] = field(default_factory=dict)
    tasks: list[tuple[int, str, Group]] = field(default_factory=list)
    count: int = 0

    async def others(self, group: Group) -> list[frozenset[str]]:
        """The terms of other groups' tasks among the newest."""
        time_slice, others = TimeSlice(rest=1.0), []
        for _, task, its in sorted(self.tasks, reverse=True)[:MOST_OTHERS]:
            if its != group:
                others.append(frozenset(words_of(task)))
                await time_slice.give_way()
        return others


class EvidenceCollector:
    """Finds episodes and reads them."""

    def __init__(self, store: VectorStore, digest_reader: DigestReader) -> None:
        self._store = store
        self._digest_reader = digest_reader

    async def gather(self, namespaces: Sequence[str], regex: str) -> Gathered:
        """All groups of ended episodes whose task or task type the regex matches; empty: any."""
        matching = compiled(regex) if regex else None
        gathered = Gathered()
        each = -(-MOST_EPISODES // len(namespaces))
        for namespace in namespaces:
            count = 0
            async for record in self._ended(namespace, ()):
                if matching is not None and not _matches(matching, record):
                    continue
                group = own_group(record, regex)
                gathered.groups.setdefault(group, Members()).add(record)
                if count < MOST_OTHERS:
                    key = record.payload[SORT_KEY]
                    gathered.tasks.append((key, record.payload["task"], group))
                count += 1
                if count >= each:
                    break
            gathered.count += count
        return gathered

    async def count(self, namespace: str, group: Group) -> int:
        """How many ended episodes a group has; of one by words, among the newest."""
        if group.by is GroupBy.WORDS:
            return (await self.members(namespace, group)).count
        return await self._store.count(EPISODES, namespace, [_ENDED, *_conditions(group)])

    async def members(self, namespace: str, group: Group) -> Members:
        """The newest episodes of a group: at most ``MOST_OF_GROUP`` are looked at."""
        members, looked_at = Members(), 0
        async for record in self._ended(namespace, _conditions(group)):
            if group.by is not GroupBy.WORDS or own_group(record) == group:
                members.add(record)
            looked_at += 1
            if looked_at >= MOST_OF_GROUP:
                break
        return members

    async def contrast(self, namespace: str) -> Gathered:
        """The newest tasks of a namespace."""
        gathered = Gathered()
        async for record in self._ended(namespace, ()):
            key = record.payload[SORT_KEY]
            gathered.tasks.append((key, record.payload["task"], own_group(record)))
            if len(gathered.tasks) >= MOST_OTHERS:
                break
        return gathered

    async def read(self, members: Members) -> list[Digest]:
        """The newest episodes of a group with their events, newest first."""
        newest = sorted(members.newest, reverse=True)[:MOST_OF_GROUP]
        digests, time_slice = [], TimeSlice(rest=1.0)
        for at in range(0, len(newest), _BATCH):
            batch = newest[at : at + _BATCH]
            found: dict[str, Record] = {}
            for namespace in sorted({namespace for _, namespace, _ in batch}):
                points = [point for _, ns, point in batch if ns == namespace]
                found |= await self._store.get(EPISODES, namespace, points)
            for _, _, point in batch:
                if point in found:
                    digests.append(await self._digest_reader.digest(found[point]))
                await time_slice.give_way()
        return digests

    def _ended(self, namespace: str, where: Sequence[Condition]) -> AsyncIterator[Record]:
        return scan(
            self._store, EPISODES, namespace, [_ENDED, *where], payload=_LIGHT, descending=True
        )


def _matches(regex: Regex, record: Record) -> bool:
    payload: Mapping[str, str] = record.payload
    return regex.matches(payload["task"]) or regex.matches(payload.get("task_type", ""))


def own_group(record: Record, regex: str = "") -> Group:
    """The group of an episode, by its record."""
    payload: Mapping[str, str] = record.payload
    task_type, category = payload.get("task_type", ""), payload.get("category", "")
    words = () if task_type or category or regex else words_of(payload["task"])
    return group_of(task_type, category, regex, words)


def _conditions(group: Group) -> list[Condition]:
    if group.by is GroupBy.TASK_TYPE:
        return [Equals("task_type", group.value)]
    if group.by is GroupBy.CATEGORY:
        return [Equals("category", group.value), Missing("task_type")]
    return [Missing("task_type"), Missing("category")]
