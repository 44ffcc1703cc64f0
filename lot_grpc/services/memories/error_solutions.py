"""Error solutions: save, list, delete.

A solution that nobody named has an id made of what makes it the same solution of the same error
(``domain.error_solution.same_solution_id``), so that insert-only decides between two who save it
and no claim is needed. That holds because no call edits a solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lot_grpc.domain.error_solution import (
    ErrorSolution,
    ErrorSolutionContent,
    ErrorSolutionFilter,
    different_fields,
    same_solution_id,
    search_text,
)
from lot_grpc.domain.errors import (
    ContentionError,
    ErrorSolutionIdInUseError,
    ErrorSolutionNotFoundError,
)
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.json_values import fields_to_hash
from lot_grpc.domain.outcomes import Outcomes
from lot_grpc.domain.sameness import same_content
from lot_grpc.ports import EXPIRES_KEY, Condition, Equals, IdIn, Range, Record, VectorStore
from lot_grpc.services.expiry import check_expiry, with_ttl
from lot_grpc.services.indexing import Indexing
from lot_grpc.services.ledger import Ask, Entry, Ledger
from lot_grpc.services.moments import Moments
from lot_grpc.services.paging import Fits, Position, any_size, each, read_page
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, OUTCOMES, SORT_KEY
from lot_grpc.services.records.error_solutions import (
    error_solution_conditions,
    error_solution_from_record,
    error_solution_point,
    error_solution_record,
)
from lot_grpc.services.records.patterns import REQUEST, STATS_REVISION
from lot_grpc.services.tombstones import Tombstone, Tombstones

NOUN = "error_solution"
_METHOD = "SaveErrorSolution"
_TRIES = 20

SEEN_KEYS = ("error_solution_id", "revision", STATS_REVISION, SORT_KEY)
"""What ``delete_as_seen`` must know of one."""


@dataclass(frozen=True, slots=True)
class ErrorSolutionDraft:
    """An error solution to save. Without an id the same one is stored once.

    ``initial_success_rate`` None: 1.0, or 0.0 where it did not work. ``ttl`` in microseconds from
    the save, instead of ``content.expire_time``.
    """

    content: ErrorSolutionContent
    error_solution_id: str = ""
    initial_success_rate: float | None = None
    request_id: str = ""
    ttl: int | None = None

    def hash(self) -> str:
        """The same for the same request."""
        return content_hash(
            [
                fields_to_hash(self.content),
                self.error_solution_id,
                self.initial_success_rate,
                self.ttl,
            ]
        )


@dataclass(frozen=True, slots=True)
class SavedErrorSolution:
    """What became of a draft. ``truncated``: the model did not read all of its message.

    ``kept``: fields of the stored solution that a repeat gave otherwise, and that stay.
    """

    error_solution: ErrorSolution
    created: bool
    truncated: bool = False
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ErrorSolutionPage:
    """A page of error solutions, newest first; ``next`` is None at the end."""

    error_solutions: list[ErrorSolution]
    next: Position | None


class ErrorSolutions:
    """The error solutions of all namespaces."""

    def __init__(
        self,
        store: VectorStore,
        indexing: Indexing,
        moments: Moments,
        ledger: Ledger,
        tombstones: Tombstones,
    ) -> None:
        self._store = store
        self._indexing = indexing
        self._moments = moments
        self._ledger = ledger
        self._tombstones = tombstones

    # --- saving -------------------------------------------------------------------------------

    async def save(self, namespace: str, draft: ErrorSolutionDraft) -> SavedErrorSolution:
        """Save one.

        Raises ErrorSolutionIdInUseError, RequestIdReusedError, ContentionError;
        ErrorSolutionNotFoundError where a repeat meets what was deleted since.
        """
        draft.content.check()
        check_expiry(NOUN, draft.content.expire_time, self._moments.now())
        solution_id = draft.error_solution_id or same_solution_id(draft.content)
        entry = None
        if draft.request_id:
            plan = {"error_solution_id": solution_id}
            ask = Ask(namespace, _METHOD, draft.request_id, draft.hash(), plan)
            entry = await self._ledger.begin(ask)
            solution_id = entry.plan["error_solution_id"]
            if not entry.first:
                earlier = await self._earlier(namespace, solution_id, entry)
                if earlier is not None:
                    return earlier
        saved = await self._write(namespace, solution_id, draft, entry)
        if entry is not None:
            await self._finish(entry, saved)
        return saved

    async def _earlier(
        self, namespace: str, solution_id: str, entry: Entry
    ) -> SavedErrorSolution | None:
        """The answer to a repeat; None if the first try did not get as far as the solution."""
        record = await self._record(namespace, solution_id)
        if record is not None and entry.result:
            return SavedErrorSolution(error_solution_from_record(record), entry.result["created"])
        if record is not None and _wrote(entry, record):
            saved = SavedErrorSolution(error_solution_from_record(record), created=True)
            await self._finish(entry, saved)
            return saved
        if record is None:
            stone = await self._tombstones.find(namespace, NOUN, solution_id)
            if entry.result or (stone and stone.delete_time >= entry.create_time):
                raise ErrorSolutionNotFoundError(
                    namespace,
                    solution_id,
                    "it was deleted after this request saved it, or has expired",
                )
        return None

    async def _finish(self, entry: Entry, saved: SavedErrorSolution) -> None:
        solution_id = saved.error_solution.error_solution_id
        await self._ledger.finish(
            entry, {"error_solution_id": solution_id, "created": saved.created}
        )

    async def _write(
        self, namespace: str, solution_id: str, draft: ErrorSolutionDraft, entry: Entry | None
    ) -> SavedErrorSolution:
        """Write it unless it is there; one that goes away in between is written again."""
        stored = await self._record(namespace, solution_id)
        for _ in range(_TRIES):
            if stored is not None:
                return _there_already(draft, entry, stored)
            indexed = await self._indexing.vectors_of(search_text(draft.content))
            solution = self._made(namespace, solution_id, draft)
            record = error_solution_record(solution, self._moments.sort_key(), indexed.vectors)
            if entry is not None:
                record.payload[REQUEST] = entry.point
            if record.id in await self._store.insert(ERROR_SOLUTIONS, [record]):
                # What was recorded of an expired one whose id was just taken again.
                older = Range(SORT_KEY, lt=record.payload[SORT_KEY])
                await self._forget_log(namespace, solution_id, [older])
                return SavedErrorSolution(solution, created=True, truncated=indexed.text_truncated)
            stored = await self._record(namespace, solution_id)
        raise ContentionError(NOUN, solution_id)

    def _made(self, namespace: str, solution_id: str, draft: ErrorSolutionDraft) -> ErrorSolution:
        now = self._moments.now()
        given = draft.initial_success_rate
        rate = draft.content.first_success_rate if given is None else given
        return ErrorSolution(
            namespace=namespace,
            error_solution_id=solution_id,
            content=with_ttl(draft.content, draft.ttl, now),
            signature=draft.content.error.signature,
            outcomes=Outcomes(success_rate=rate),
            revision=1,
            create_time=now,
            update_time=now,
        )

    # --- reading and deleting -----------------------------------------------------------------

    async def get(self, namespace: str, error_solution_id: str) -> ErrorSolution:
        """One error solution. Raises ErrorSolutionNotFoundError."""
        return error_solution_from_record(await self.record(namespace, error_solution_id))

    async def record(self, namespace: str, error_solution_id: str) -> Record:
        """The record of one. Raises ErrorSolutionNotFoundError."""
        record = await self._record(namespace, error_solution_id)
        if record is None:
            raise ErrorSolutionNotFoundError(namespace, error_solution_id)
        return record

    async def get_many(
        self, namespace: str, error_solution_ids: Sequence[str]
    ) -> list[ErrorSolution]:
        """Those that are there, in the order asked."""
        points = [error_solution_point(namespace, one) for one in error_solution_ids]
        found = await self._store.get(ERROR_SOLUTIONS, namespace, points)
        return [error_solution_from_record(found[point]) for point in points if point in found]

    async def list_page(
        self,
        namespace: str,
        asked: ErrorSolutionFilter,
        size: int,
        after: Position | None,
        fits: Fits[ErrorSolution] = any_size,
    ) -> ErrorSolutionPage:
        """A page, newest first."""
        where, read = error_solution_conditions(asked), each(error_solution_from_record)
        found = await read_page(
            self._store, ERROR_SOLUTIONS, namespace, where, size, after, read, fits
        )
        return ErrorSolutionPage(*found)

    async def delete(self, namespace: str, error_solution_id: str) -> None:
        """Delete one. Raises ErrorSolutionNotFoundError."""
        record = await self.record(namespace, error_solution_id)
        await self.finish_delete(await self._tombstones.begin(NOUN, error_solution_id, record))

    async def delete_as_seen(self, record: Record) -> bool:
        """Delete one that is still as its record says, read with ``SEEN_KEYS`` at least.

        False for one that was used since, or whose id another one took: it is spared.
        """
        error_solution_id = record.payload["error_solution_id"]
        seen = (STATS_REVISION,)
        stone = await self._tombstones.begin(NOUN, error_solution_id, record, unchanged=seen)
        return await self.finish_delete(stone)

    async def finish_delete(self, stone: Tombstone) -> bool:
        """Carry out a delete that was written down, and forget the log.

        False if it was used since and is to be spared then. What took the id since is spared.
        """
        namespace, point = stone.namespace, error_solution_point(stone.namespace, stone.id)
        await self._store.delete(ERROR_SOLUTIONS, namespace, [IdIn((point,)), *stone.conditions()])
        left = (await self._store.get(ERROR_SOLUTIONS, namespace, [point])).get(point)
        spared = left is not None and left.payload[SORT_KEY] == stone.sort_key
        if not spared:
            await self._forget_log(
                namespace, stone.id, [Range(SORT_KEY, lt=left.payload[SORT_KEY])] if left else []
            )
        await self._tombstones.finish(stone)
        return not spared

    async def finish_expiry(self, record: Record) -> None:
        """Forget the log of one that expired, unless it is that of another that took its id."""
        older = Range(SORT_KEY, lte=record.payload[EXPIRES_KEY])
        await self._forget_log(record.namespace, record.payload["error_solution_id"], [older])

    async def _forget_log(
        self, namespace: str, error_solution_id: str, where: Sequence[Condition]
    ) -> None:
        theirs = Equals("error_solution_id", error_solution_id)
        await self._store.delete(OUTCOMES, namespace, [theirs, *where])

    async def _record(self, namespace: str, error_solution_id: str) -> Record | None:
        point = error_solution_point(namespace, error_solution_id)
        return (await self._store.get(ERROR_SOLUTIONS, namespace, [point])).get(point)


def _wrote(entry: Entry | None, record: Record) -> bool:
    """Whether a record was written by a try of this request."""
    return entry is not None and record.payload.get(REQUEST) == entry.point


def _there_already(
    draft: ErrorSolutionDraft, entry: Entry | None, record: Record
) -> SavedErrorSolution:
    """The answer to a save of what is there. Raises ErrorSolutionIdInUseError."""
    stored = error_solution_from_record(record)
    if _wrote(entry, record):  # by another try at the same time
        return SavedErrorSolution(stored, created=True)
    if not draft.error_solution_id:
        kept = different_fields(stored.content, draft.content)
        return SavedErrorSolution(stored, created=False, kept=kept)
    if not same_content(stored.content, draft.content):
        raise ErrorSolutionIdInUseError(stored.namespace, stored.error_solution_id)
    return SavedErrorSolution(stored, created=False)
