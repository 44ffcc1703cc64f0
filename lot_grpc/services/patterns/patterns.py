"""Reading, editing, deleting and summarising patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.origin import NO_EDITOR, Editor
from lot_grpc.domain.pattern import Pattern, PatternContent, dedupe_hash, search_text
from lot_grpc.domain.query import PatternFilter
from lot_grpc.kernel.compare_and_set import ConflictError, as_read, compare_and_set
from lot_grpc.kernel.tombstones import Tombstone
from lot_grpc.ports import (
    Record,
)
from lot_grpc.regexes import check_regex
from lot_grpc.services.expiry import check_expiry, with_ttl
from lot_grpc.services.lineage.resources import SupersedingResources
from lot_grpc.services.patterns.lineage import PatternLineage
from lot_grpc.services.patterns.pattern_stats import PatternStats, sum_up
from lot_grpc.services.patterns.spec import PATTERN
from lot_grpc.services.records.collections import (
    PATTERNS,
    REQUESTS,
    SORT_KEY,
)
from lot_grpc.services.records.counters import STATS_REVISION
from lot_grpc.services.records.patterns import (
    claim_point,
    pattern_from_record,
    pattern_point,
    pattern_record,
    preserved_in_edits,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.transfer.rows import Row
from lot_grpc.services.unique_content import UniqueContentIndex


@dataclass(frozen=True, slots=True)
class PatternEdit:
    """New values of the named fields of a content; ``ttl`` (microseconds) instead of an expiry.

    ``sets_confidence`` is False for an edit that has a confidence among all else, as one does that
    writes back what it read: it leaves one alone that feedback moved. ``editor`` is who edits.
    """

    content: PatternContent
    fields: frozenset[str]
    ttl: int | None = None
    sets_confidence: bool = True
    editor: Editor = NO_EDITOR

    def unchanged_fields(self, pattern: Pattern) -> tuple[str, ...]:
        """The fields that this edit does not change although its values differ."""
        leaves = (
            "confidence" in self.fields
            and not self.sets_confidence
            and pattern.feedback.feedback_count > 0
            and self.content.confidence != pattern.content.confidence
        )
        return ("confidence",) if leaves else ()

    def apply(self, old: PatternContent, now: int) -> PatternContent:
        """The content after the edit."""
        new = replace(old, **{name: getattr(self.content, name) for name in self.fields})
        return with_ttl(new, self.ttl, now)


@dataclass(frozen=True, slots=True)
class Updated:
    """An edited pattern. The flags: the model did not read all of its text, of its code.

    ``unchanged_fields`` are fields that feedback moved and the edit left alone.
    """

    pattern: Pattern
    text_truncated: bool = False
    code_truncated: bool = False
    unchanged_fields: tuple[str, ...] = ()


class Patterns(SupersedingResources[Pattern, PatternFilter]):
    """The patterns of all namespaces."""

    def __init__(
        self, runtime: Runtime, content_index: UniqueContentIndex, lineage: PatternLineage
    ) -> None:
        super().__init__(PATTERN, runtime, lineage)
        self._content_index = content_index
        self._policies = runtime.policies

    # --- editing ------------------------------------------------------------------------------

    async def update(
        self, namespace: str, pattern_id: str, edit: PatternEdit, etag: str
    ) -> Updated:
        """Apply an edit of the content to the pattern that has ``etag`` (empty: any).

        Counters are never overwritten: an outcome or a feedback that comes between is kept and the
        edit tried again on top of it. Raises PatternNotFoundError (also for what it is to
        supersede), EtagMismatchError, RequestInvalidError, OriginReservedError, OriginRaisedError,
        ContentionError.
        """

        async def attempt() -> Updated:
            record = await self.read_record(namespace, pattern_id, vectors=True, etag=etag)
            pattern = pattern_from_record(record)
            unchanged_fields = edit.unchanged_fields(pattern)
            written = replace(edit, fields=edit.fields - set(unchanged_fields))
            content = written.apply(pattern.content, self._time.now())
            content = edit.editor.apply(pattern.content, content, self.spec.kind, pattern_id)
            content.check()
            if content.task_type_pattern != pattern.content.task_type_pattern:
                check_regex(content.task_type_pattern, "pattern.task_type_pattern")
            if content.expire_time != pattern.content.expire_time:
                check_expiry(ResourceKind.PATTERN, content.expire_time, self._time.now())
            if content == pattern.content:
                return Updated(pattern, unchanged_fields=unchanged_fields)
            texts = search_text(pattern.content), search_text(content)
            indexed = await self._indexer.vectors_after_edit(record, *texts)
            edited = replace(
                pattern,
                content=content,
                revision=pattern.revision + 1,
                update_time=max(self._time.now(), pattern.update_time),
                review=await self._policies.review_of_edit(pattern, content, edit.editor),
            )
            preserved = preserved_in_edits(record.payload)
            new = pattern_record(edited, record.payload[SORT_KEY], indexed.vectors, preserved)
            write = partial(self._replace, record, new)
            if not await self._lineage.carry_out(record, new.payload, write):
                raise ConflictError
            return Updated(edited, indexed.text_truncated, indexed.code_truncated, unchanged_fields)

        return await compare_and_set(ResourceKind.PATTERN, pattern_id, attempt)

    async def _replace(self, record: Record, new: Record) -> bool:
        """Write the edit if neither revision moved; move the claim with the content.

        The new claim comes first and the old one goes last, so that a content is never without
        one; a claim whose pattern has other content is ignored and moved on when it is met.
        """
        namespace, pattern_id = record.namespace, record.payload["pattern_id"]
        old_content, content = (pattern_from_record(one).content for one in (record, new))
        moved = dedupe_hash(old_content) != dedupe_hash(content)
        if moved:
            claim = claim_point(namespace, content)
            await self._content_index.take(namespace, {claim: pattern_id})
        unchanged = as_read(record, "revision", STATS_REVISION)
        written = await self._store.replace(PATTERNS, new, unchanged)
        if written and moved:
            old_claim = claim_point(namespace, old_content)
            await self._content_index.release(namespace, old_claim, pattern_id)
        return written

    # --- deleting -----------------------------------------------------------------------------

    async def _drop_dependents(self, stone: Tombstone, left: Record | None) -> None:
        """Delete its claim, its outcomes and its feedback."""
        if left is None:  # else another took the id since, and leaves the claim to saves
            await self._content_index.release_all(stone.namespace, stone.id)
        await super()._drop_dependents(stone, left)

    async def finish_expiry(self, record: Record) -> None:
        """Delete what belongs to a pattern that expired, unless its id is in use again."""
        await super().finish_expiry(record)
        if not await self._store.get(PATTERNS, record.namespace, [record.id]):
            await self._content_index.release_all(record.namespace, record.payload["pattern_id"])

    # --- exports and imports ------------------------------------------------------------------

    async def unique_ids(self, namespace: str, records: Sequence[Record]) -> set[str]:
        """Those of the patterns that hold the claim on their content."""
        claims = {
            record.id: claim_point(namespace, pattern_from_record(record).content)
            for record in records
        }
        held = await self._store.get(REQUESTS, namespace, list(claims.values()))
        owners = {claim: row.payload["pattern_id"] for claim, row in held.items()}
        return {
            record.id
            for record in records
            if owners.get(claims[record.id]) == record.payload["pattern_id"]
        }

    async def before_import(self, rows: Sequence[Row]) -> None:
        """Take the claims that patterns held, before they are stored: as saves do, which meet them.

        One that a pattern of another id holds here stays with that, if it is there.
        """
        await super().before_import(rows)
        claiming = [row.record for row in rows if row.claimed]
        if not claiming:
            return
        namespace = claiming[0].namespace
        owners: dict[str, str] = {}
        time_slice = TimeSlice()
        for one in claiming:
            claim = claim_point(namespace, pattern_from_record(one).content)
            owners[claim] = str(one.payload["pattern_id"])
            await time_slice.give_way()
        taken = await self._content_index.take(namespace, owners)
        for claim in owners.keys() - taken:
            owner = await self._content_index.owner(namespace, claim, owners[claim])
            point = pattern_point(namespace, owner)
            if owner != owners[claim] and not await self._store.get(PATTERNS, namespace, [point]):
                await self._content_index.move(namespace, claim, owner, owners[claim])

    # --- sums ---------------------------------------------------------------------------------

    async def stats(self, namespace: str, criteria: PatternFilter) -> PatternStats:
        """Totals over the patterns that match a filter."""
        return await sum_up(self._store, namespace, criteria)
