"""Creating memories: repeats, one embedding and one write per batch.

For each draft, in order: the request is recorded (``kernel.create``), the texts are embedded, the
records are inserted, what they contradict is looked up, and the request is marked done. Those that
supersede a memory come after the rest of the batch, one by one. Insert-only decides who gets an id.
A draft with unique content gets its id from the content, so only one of two concurrent ones is
stored; if the memory with that id was edited to other content, or is no longer true, the next id of
the content is tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import (
    ContentionError,
    LotError,
    MemoryIdInUseError,
    MemoryNotFoundError,
    QuotaExceededError,
    RequestInvalidError,
)
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.memory import (
    IndexingState,
    Memory,
    different_fields,
    same_memory_id,
    search_text,
)
from lot_grpc.domain.origin import OriginKind, review_of_new
from lot_grpc.domain.sameness import same_content
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.kernel.create import Creation, Earlier
from lot_grpc.ports import MultiVector, Record
from lot_grpc.services.expiry import with_ttl
from lot_grpc.services.indexer import Indexed
from lot_grpc.services.lineage.lineage import Lineage
from lot_grpc.services.memories.conflict_finder import ConflictFinder
from lot_grpc.services.memories.drafts import Created, MemoryDraft
from lot_grpc.services.memories.indexing import MemoryIndexing
from lot_grpc.services.memories.spec import MEMORY
from lot_grpc.services.outcomes.known_empty import KnownEmpty
from lot_grpc.services.outcomes.logs import forget_older_logs
from lot_grpc.services.records.collections import MEMORIES, OUTCOMES, TEXT_VECTOR
from lot_grpc.services.records.memories import (
    memory_from_record,
    memory_point,
    memory_record,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.time_slice import TimeSlice

_KIND = MEMORY.creation

_INSERTED = 1024
"""Vectors that are written at once: they are some 12 KB each on their way, and hold the loop."""


@dataclass(slots=True, kw_only=True)
class _Work(Creation):
    """A draft being created. ``tried``: how many ids of its content other contents have taken."""

    draft: MemoryDraft
    indexed: Indexed | None = None
    result: Created | LotError | None = None
    tried: int = 0

    @property
    def point(self) -> str:
        """Its point."""
        return memory_point(self.namespace, self.id)

    @property
    def may_be_there(self) -> bool:
        """Whether its id may exist already, because it was not generated just now."""
        return self.repeated or self.draft.unique or bool(self.draft.memory_id)


class MemoryCreator:
    """Creates memories, singly or in batches."""

    def __init__(
        self,
        runtime: Runtime,
        indexing: MemoryIndexing,
        lineage: Lineage[Memory],
        conflicts: ConflictFinder,
    ) -> None:
        self._indexing = indexing
        self._lineage = lineage
        self._conflicts = conflicts
        self._store = runtime.store
        self._indexer = runtime.indexer
        self._time = runtime.time
        self._create = runtime.create
        self._policies = runtime.policies
        self._never_used = KnownEmpty(runtime, OUTCOMES, MEMORY.kind)

    async def create_many(
        self, namespace: str, drafts: Sequence[MemoryDraft]
    ) -> list[Created | LotError]:
        """Create each by itself; one result each, in order. Store errors end the call."""
        works = [
            _Work(namespace=namespace, id="", request_id=draft.request_id, draft=draft)
            for draft in drafts
        ]
        time_slice = TimeSlice()
        for work in works:
            try:
                work.draft.check(self._time.now())
                work.id = _first_id(work.draft)
            except LotError as error:
                work.result = error
            await time_slice.give_way()
        await self._enter(_open(works))
        await self._store_all(namespace, works)
        await self._note_conflicts(namespace, works)
        for work in works:
            if isinstance(work.result, Created):
                memory, created = work.result.memory, work.result.created
                given = (memory.memory_id, memory.create_time)
                self._indexing.add(memory)
                await self._create.finish(_KIND, work, *given, created=created)
        return [work.result for work in works if work.result is not None]

    # --- steps --------------------------------------------------------------------------------

    async def _enter(self, works: Sequence[_Work]) -> None:
        time_slice = TimeSlice()
        for work in works:
            if work.request_id:
                work.content_hash = work.draft.hash()
                await time_slice.give_way()
        await self._create.enter(_KIND, works)
        for work in works:
            try:
                earlier = await self._create.earlier(_KIND, work)
            except MemoryNotFoundError as error:
                work.result = error
            else:
                work.result = work.refused
                if earlier is not None:
                    work.result = await self._found(work, earlier)

    async def _found(self, work: _Work, earlier: Earlier) -> Created:
        """The answer to a request of which an earlier try got as far as its memory."""
        memory = memory_from_record(earlier.record)
        if not earlier.result and memory.content.supersedes:
            await self._lineage.settle(work.namespace, memory.content.supersedes)
        return Created(memory, earlier.created)

    async def _store_all(self, namespace: str, works: Sequence[_Work]) -> None:
        """Store each, or find what is stored; those that others come in between of once more."""
        look_at = [work for work in _open(works) if work.may_be_there]

        async def attempt() -> None:
            await self._take_stored(namespace, look_at)
            await self._insert(_open(works))
            if left := _open(works):
                look_at[:] = left
                raise ConflictError

        try:
            await compare_and_set(ResourceKind.MEMORY, works[0].id if works else "", attempt)
        except ContentionError:
            for work in _open(works):
                work.result = ContentionError(ResourceKind.MEMORY, work.id)

    async def _take_stored(self, namespace: str, works: Sequence[_Work]) -> None:
        """Answer those whose id is taken; ids derived from content move on to the next one."""
        if not works:
            return
        there = await self._store.get(MEMORIES, namespace, [work.point for work in works])
        written = [one for work in works if (one := there.get(work.point)) and work.wrote(one)]
        if written:  # by a try that may have died before it did this
            await forget_older_logs(self._store, MEMORY, written)
        moved = []
        for work in works:
            if work.point in there:
                self._take(work, there[work.point])
                if work.result is None:
                    moved.append(work)
        await self._take_stored(namespace, moved)

    def _take(self, work: _Work, record: Record) -> None:
        stored, given = memory_from_record(record), work.draft.content
        if work.wrote(record):  # by an earlier try, or another one at the same time
            work.result = Created(stored, created=True)
        elif not work.draft.unique:
            same = same_content(stored.content, given)
            work.result = (
                Created(stored, created=False)
                if same
                else MemoryIdInUseError(work.namespace, work.id)
            )
        elif same_memory_id(stored.content) == same_memory_id(given) and stored.covers(
            given, self._time.now()
        ):
            unchanged_fields = different_fields(stored.content, given)
            work.result = Created(stored, created=False, unchanged_fields=unchanged_fields)
        else:
            work.tried += 1
            work.id = same_memory_id(given, work.tried)

    async def _insert(self, works: Sequence[_Work]) -> None:
        """Insert those whose id is free, each id once; the others are looked at again."""
        for work in works:
            try:
                work.draft.content.check_validity(self._time.now())
            except RequestInvalidError as error:
                work.result = error
        works = _open(works)
        fresh = {work.point: work for work in reversed(works)}
        unindexed = [work for work in fresh.values() if work.indexed is None]
        if not fresh:
            return
        texts = [search_text(work.draft.content) for work in unindexed]
        made, review_origins = await asyncio.gather(
            self._indexer.first_vectors(texts),
            self._policies.review_origins(works[0].namespace),
        )
        for work, indexed in zip(unindexed, made, strict=True):
            work.indexed = indexed
        ready = [work for work in works if fresh.get(work.point) is work]
        for group in _groups([work for work in ready if not work.draft.content.supersedes]):
            await self._insert_group(group, review_origins)
        for work in ready:
            if work.draft.content.supersedes:
                await self._supersede(work, review_origins)

    async def _supersede(self, work: _Work, review_origins: Collection[OriginKind]) -> None:
        """Insert one that supersedes another; that may be of this batch."""
        superseded = work.draft.content.supersedes
        try:
            note = await self._lineage.begin(work.namespace, work.id, superseded)
            await self._insert_group([work], review_origins)
            if isinstance(work.result, QuotaExceededError):
                await self._lineage.drop(note)
                return
            await self._lineage.follow(note)
        except (MemoryNotFoundError, RequestInvalidError) as error:
            work.result = error

    async def _insert_group(
        self, group: Sequence[_Work], review_origins: Collection[OriginKind]
    ) -> None:
        records = [
            self._record(work, work.indexed, review_origins) for work in group if work.indexed
        ]
        new = {work.point for work in group if not work.may_be_there}
        try:
            inserted = await self._lineage.insert(records, new)
        except QuotaExceededError as error:
            if len(group) == 1:
                group[0].result = error
                return
            for work in group:  # as many as fit
                await self._insert_group([work], review_origins)
            return
        reused = [one for one in records if one.id in inserted and one.id not in new]
        if reused and not await self._never_used(reused[0].namespace):
            await forget_older_logs(self._store, MEMORY, reused)
        for work, record in zip(group, records, strict=True):
            if record.id in inserted:
                truncated = work.indexed is not None and work.indexed.text_truncated
                work.result = Created(memory_from_record(record), True, truncated)
                self._indexing.add(work.result.memory)  # even if the call fails later on

    async def _note_conflicts(self, namespace: str, works: Sequence[_Work]) -> None:
        """Add what each new memory contradicts, others of its batch included."""
        new = [
            (work, work.result)
            for work in works
            if isinstance(work.result, Created) and work.result.created
        ]
        known = {work.id: work.indexed.vectors[TEXT_VECTOR] for work, _ in new if work.indexed}
        memories = [created.memory for _, created in new]
        conflicts = await self._conflicts.of(namespace, memories, known)
        for (work, created), found in zip(new, conflicts, strict=True):
            work.result = replace(created, conflicts=found)

    def _record(
        self, work: _Work, indexed: Indexed, review_origins: Collection[OriginKind]
    ) -> Record:
        now = self._time.now()
        content = with_ttl(work.draft.content, work.draft.ttl, now)
        state = IndexingState.PENDING if indexed.pending else IndexingState.COMPLETE
        review = review_of_new(content.origin, review_origins)
        memory = Memory(work.namespace, work.id, content, 1, now, now, state, review=review)
        return work.sign(memory_record(memory, self._time.sort_key(), indexed.vectors))


def _first_id(draft: MemoryDraft) -> str:
    if draft.unique:
        return same_memory_id(draft.content)
    return draft.memory_id or new_id("m")


def _open(works: Sequence[_Work]) -> list[_Work]:
    """Those that are not finished."""
    return [work for work in works if work.result is None]


def _groups(works: Sequence[_Work]) -> Iterator[list[_Work]]:
    """The works in order, cut to what is written at once; at least one each."""
    group: list[_Work] = []
    vectors = 0
    for work in works:
        theirs = _count(work.indexed)
        if group and vectors + theirs > _INSERTED:
            yield group
            group, vectors = [], 0
        group.append(work)
        vectors += theirs
    if group:
        yield group


def _count(indexed: Indexed | None) -> int:
    vectors = indexed.vectors.values() if indexed else ()
    return sum(len(one.vectors) if isinstance(one, MultiVector) else 1 for one in vectors)
