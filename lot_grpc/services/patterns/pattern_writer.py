"""Saving patterns: repeats, claims on contents, one embedding and one write per batch.

For each draft, in order: the request is recorded (``kernel.create``), the content is claimed
(``dedupe`` EXACT), the texts are embedded, the records are inserted, and the request is marked
done. Drafts that are merged by meaning, or supersede a pattern, come after the rest of the batch,
one by one.

Whoever holds a claim owns the pattern of that content. A claim without a pattern was left by a dead
process, or its owner is about to write the pattern: it is then written under the claimed id, and
insert-only decides who wins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import (
    LotError,
    PatternIdInUseError,
    PatternNotFoundError,
    QuotaExceededError,
)
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.origin import review_of_new
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.pattern import Pattern, dedupe_hash, search_text
from lot_grpc.domain.sameness import same_content
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.ports import Record
from lot_grpc.services.expiry import with_ttl
from lot_grpc.services.indexer import Indexed
from lot_grpc.services.outcomes.logs import forget_older_logs
from lot_grpc.services.patterns.drafts import PatternDraft, Saved, SaveWork
from lot_grpc.services.patterns.lineage import PatternLineage
from lot_grpc.services.patterns.repeat_counter import RepeatCounter, stored_pattern
from lot_grpc.services.patterns.spec import PATTERN
from lot_grpc.services.records.collections import PATTERNS
from lot_grpc.services.records.patterns import (
    claim_point,
    pattern_from_record,
    pattern_record,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.unique_content import UniqueContentIndex


class PatternWriter:
    """Saves patterns, singly or in batches."""

    def __init__(
        self,
        runtime: Runtime,
        content_index: UniqueContentIndex,
        lineage: PatternLineage,
        repeats: RepeatCounter,
    ) -> None:
        self._store = runtime.store
        self._indexer = runtime.indexer
        self._time = runtime.time
        self._create = runtime.create
        self._content_index = content_index
        self._tombstones = runtime.tombstones
        self._lineage = lineage
        self._repeats = repeats
        self._policies = runtime.policies

    async def save(self, namespace: str, draft: PatternDraft) -> Saved:
        """Save one pattern."""
        result = (await self.save_many(namespace, [draft]))[0]
        if isinstance(result, LotError):
            raise result
        return result

    async def save_many(
        self, namespace: str, drafts: Sequence[PatternDraft]
    ) -> list[Saved | LotError]:
        """Save each as ``save`` would; one result each, in order. Store errors end the call."""
        works = [
            SaveWork(
                namespace=namespace,
                id=draft.pattern_id or new_id("p"),
                request_id=draft.request_id,
                draft=draft,
                outcome_id=new_id("o"),
            )
            for draft in drafts
        ]
        time_slice = TimeSlice()
        for work in works:
            try:
                work.draft.check(self._time.now())
            except LotError as error:
                work.result = error
            await time_slice.give_way()
        await self._enter([work for work in works if work.open])
        await self._check_content(namespace, [work for work in works if work.open])
        fresh = [work for work in works if work.open]
        await self._embed(fresh)
        fresh = [work for work in fresh if not work.draft.alone]
        await self._take_content(namespace, fresh)
        await self._insert(fresh)
        for work in works:
            if work.open:
                try:
                    await self._repeats.merge(work)
                    if work.open:
                        work.result = await self._resolve(work)
                except LotError as error:
                    work.result = error
                    if isinstance(error, QuotaExceededError):
                        await self._withdraw(work)
            if isinstance(work.result, Saved):
                pattern, created = work.result.pattern, work.result.created
                given = (pattern.pattern_id, pattern.create_time)
                further = {"merged_at": work.result.merged_at}
                await self._create.finish(
                    PATTERN.creation, work, *given, created=created, further=further
                )
        return [work.result for work in works if work.result is not None]

    # --- steps --------------------------------------------------------------------------------

    async def _enter(self, works: Sequence[SaveWork]) -> None:
        for work in works:
            if work.request_id:
                work.content_hash = work.draft.hash()
                work.plan = {"outcome_id": work.outcome_id}
        await self._create.enter(PATTERN.creation, works)
        for work in works:
            work.outcome_id = work.plan.get("outcome_id", work.outcome_id)
            try:
                work.result = work.refused or await self._earlier(work)
            except PatternNotFoundError as error:
                work.result = error

    async def _earlier(self, work: SaveWork) -> Saved | None:
        """The answer to a request of which an earlier try got as far as its pattern."""
        earlier = await self._create.earlier(PATTERN.creation, work)
        if earlier is None:
            return None
        pattern = pattern_from_record(earlier.record)  # it may have been edited since
        if not earlier.result and pattern.content.supersedes:
            await self._lineage.settle(work.namespace, pattern.content.supersedes)
        return Saved(pattern, earlier.created, merged_at=earlier.result.get("merged_at"))

    async def _check_content(self, namespace: str, works: Sequence[SaveWork]) -> None:
        """Leave to ``_resolve`` what another pattern, or another item, has claimed."""
        exact = [work for work in works if work.draft.exact]
        for work in exact:
            work.claim = claim_point(namespace, work.draft.content)
        seen = await self._content_index.held(namespace, [work.claim for work in exact])
        for work in exact:
            work.claimed = work.claim in seen
            seen.add(work.claim)

    async def _embed(self, works: Sequence[SaveWork]) -> None:
        texts = [work for work in works if not work.claimed]
        if not texts:
            return
        indexed, review_origins = await asyncio.gather(
            self._indexer.vectors([search_text(w.draft.content) for w in texts]),
            self._policies.review_origins(texts[0].namespace),
        )
        for work, one in zip(texts, indexed, strict=True):
            work.indexed, work.review_origins = one, review_origins

    async def _take_content(self, namespace: str, works: Sequence[SaveWork]) -> None:
        wanting = [work for work in works if work.claim and not work.claimed]
        won = await self._content_index.take(namespace, {work.claim: work.id for work in wanting})
        for work in wanting:
            work.claimed = work.claim not in won

    async def _insert(self, works: Sequence[SaveWork]) -> None:
        taken: set[str] = set()
        ready = []
        for work in works:
            if work.claimed or work.indexed is None or work.id in taken:
                continue
            taken.add(work.id)
            work.record = self._record(work, work.id, work.indexed)
            ready.append(work)
        given, new = (
            [w.record for w in ready if w.record and bool(w.draft.pattern_id) is named]
            for named in (True, False)
        )
        try:
            inserted = await self._lineage.insert(given) | await self._store.insert(PATTERNS, new)
        except QuotaExceededError as error:
            await self._insert_singly(ready, error)
            return
        for work in ready:
            if work.record is not None and work.record.id in inserted:
                if work.draft.pattern_id:
                    await forget_older_logs(self._store, PATTERN, [work.record])
                work.result = self._created(work, work.record)

    async def _insert_singly(self, works: Sequence[SaveWork], error: QuotaExceededError) -> None:
        """Insert as many as fit of those that are too much together."""
        if len(works) > 1:
            for work in works:
                await self._insert([work])
            return
        [work] = works
        work.result = error
        await self._withdraw(work)

    async def _withdraw(self, work: SaveWork) -> None:
        """Release the claim of a pattern that was refused."""
        if work.claim:
            await self._content_index.release(work.namespace, work.claim, work.id)

    async def _resolve(self, work: SaveWork) -> Saved:
        """Finish, alone, a draft whose id or content is taken."""

        async def attempt() -> Saved:
            if not work.draft.exact:
                record = await stored_pattern(self._store, work.namespace, work.id)
                return self._same_id(work, record) if record else await self._write(work, work.id)
            owner = await self._content_index.owner(work.namespace, work.claim, work.id)
            record = await stored_pattern(self._store, work.namespace, owner)
            if record is None and not await self._deleted(work, owner):
                return await self._write(work, owner)
            if record is not None and work.wrote(record):  # another try of this request did
                return Saved(pattern_from_record(record), created=True)
            if record is not None and _same_content(record, work):
                counted = await self._repeats.count(work, owner)
                if counted is not None:
                    return counted
            else:
                await self._move_claim(work, owner)
            raise ConflictError

        return await compare_and_set(ResourceKind.PATTERN, work.id, attempt)

    # --- parts of resolving -------------------------------------------------------------------

    def _same_id(self, work: SaveWork, record: Record) -> Saved:
        pattern = pattern_from_record(record)
        if work.wrote(record):
            return Saved(pattern, created=True)
        if not same_content(pattern.content, work.draft.content):
            raise PatternIdInUseError(work.namespace, work.id)
        return Saved(pattern, created=False)

    async def _deleted(self, work: SaveWork, pattern_id: str) -> bool:
        return (
            await self._tombstones.find(work.namespace, ResourceKind.PATTERN, pattern_id)
            is not None
        )

    async def _move_claim(self, work: SaveWork, owner: str) -> None:
        if owner == work.id:
            work.id = new_id("p")
        await self._content_index.move(work.namespace, work.claim, owner, work.id)

    async def _write(self, work: SaveWork, pattern_id: str) -> Saved:
        """Write the pattern under an id. Raises ConflictError if another writer just did."""
        if work.indexed is None:
            work.indexed = await self._indexer.vectors_of(search_text(work.draft.content))
        work.review_origins = await self._policies.review_origins(work.namespace)
        record = self._record(work, pattern_id, work.indexed)
        if not await self._insert_one(work, record):
            raise ConflictError
        await forget_older_logs(self._store, PATTERN, [record])
        return self._created(work, record)

    async def _insert_one(self, work: SaveWork, record: Record) -> bool:
        """Insert a pattern, and mark it and what it supersedes."""
        superseded, note = work.draft.content.supersedes, None
        if superseded:
            pattern_id = record.payload["pattern_id"]
            note = await self._lineage.begin(work.namespace, pattern_id, superseded)
        try:
            inserted = record.id in await self._lineage.insert([record])
        except QuotaExceededError:
            if note is not None:
                await self._lineage.drop(note)
            raise
        if note is not None:
            await self._lineage.follow(note)
        return inserted

    # --- records ------------------------------------------------------------------------------

    def _record(self, work: SaveWork, pattern_id: str, indexed: Indexed) -> Record:
        now = self._time.now()
        pattern = Pattern(
            namespace=work.namespace,
            pattern_id=pattern_id,
            content=with_ttl(work.draft.content, work.draft.ttl, now),
            outcomes=OutcomeStats(success_rate=work.draft.initial_success_rate),
            revision=1,
            create_time=now,
            update_time=now,
            review=review_of_new(work.draft.content.origin, work.review_origins),
        )
        return work.sign(pattern_record(pattern, self._time.sort_key(), indexed.vectors))

    def _created(self, work: SaveWork, record: Record) -> Saved:
        return Saved(
            pattern_from_record(record),
            created=True,
            text_truncated=work.indexed is not None and work.indexed.text_truncated,
            code_truncated=work.indexed is not None and work.indexed.code_truncated,
        )


def _same_content(record: Record, work: SaveWork) -> bool:
    """Whether a pattern has the content that a claim is of."""
    return dedupe_hash(pattern_from_record(record).content) == dedupe_hash(work.draft.content)
