"""Error solutions: save, read, edit, list, delete.

A solution saved without an id gets one derived from what identifies it, the same solution of the
same error (``domain.error_solution.same_solution_id``), so that insert-only decides between
concurrent saves. An edit keeps the id: an edited solution is found by its signature, and a save of
its former content takes the next id in line.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.error_solution import (
    ErrorSolution,
    ErrorSolutionFilter,
    different_fields,
    id_after,
    same_solution_id,
    search_text,
)
from lot_grpc.domain.errors import (
    ErrorSolutionIdInUseError,
)
from lot_grpc.domain.origin import review_of_new
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.sameness import same_content
from lot_grpc.kernel.compare_and_set import compare_and_set, insert_new, replace_as_read
from lot_grpc.kernel.create import Creation
from lot_grpc.ports import Condition, Equals, Range, Record
from lot_grpc.services.errors.drafts import (
    ErrorSolutionDraft,
    ErrorSolutionEdit,
    SavedErrorSolution,
)
from lot_grpc.services.errors.error_reading import read_aside
from lot_grpc.services.errors.spec import ERROR_SOLUTION
from lot_grpc.services.expiry import check_expiry, with_ttl
from lot_grpc.services.operations import Resources
from lot_grpc.services.outcomes.logs import forget_older_logs
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, SORT_KEY
from lot_grpc.services.records.counters import STATS_REVISION
from lot_grpc.services.records.error_solutions import (
    error_solution_from_record,
    error_solution_record,
)
from lot_grpc.services.records.patterns import preserved_in_edits
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.scanning import scan


class ErrorSolutions(Resources[ErrorSolution, ErrorSolutionFilter]):
    """The error solutions of all namespaces."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(ERROR_SOLUTION, runtime)
        self._policies = runtime.policies

    # --- saving -------------------------------------------------------------------------------

    async def save(self, namespace: str, draft: ErrorSolutionDraft) -> SavedErrorSolution:
        """Save a solution.

        Raises ErrorSolutionIdInUseError, RequestIdReusedError, ContentionError;
        ErrorSolutionNotFoundError if a repeated save finds it deleted.
        """
        draft.content.check()
        check_expiry(ResourceKind.ERROR_SOLUTION, draft.content.expire_time, self._time.now())
        await read_aside(draft.content.error_type, draft.content.error_message)
        creation = Creation(
            namespace=namespace,
            id=draft.error_solution_id or same_solution_id(draft.content),
            request_id=draft.request_id,
            content_hash=draft.hash(),
        )
        await self._create.enter(ERROR_SOLUTION.creation, [creation])
        if creation.refused is not None:
            raise creation.refused
        earlier = await self._create.earlier(ERROR_SOLUTION.creation, creation)
        if earlier is not None:
            solution = error_solution_from_record(earlier.record)
            saved = SavedErrorSolution(solution, earlier.created)
        else:
            saved = await self._save(creation, draft)
        solution = saved.error_solution
        given = (solution.error_solution_id, solution.create_time)
        await self._create.finish(ERROR_SOLUTION.creation, creation, *given, created=saved.created)
        return saved

    async def _save(self, creation: Creation, draft: ErrorSolutionDraft) -> SavedErrorSolution:
        """Write it unless it exists; retry if the existing one disappears in the meantime."""
        if not draft.error_solution_id:
            edited = await self._edited_into(creation.namespace, draft)
            if edited is not None:
                return _there_already(draft, creation, edited)

        async def attempt() -> SavedErrorSolution:
            stored = await self._standing(creation, draft)
            if stored is not None:
                return _there_already(draft, creation, stored)
            return await self._insert(creation, draft)

        return await compare_and_set(ResourceKind.ERROR_SOLUTION, creation.id, attempt)

    async def _standing(self, creation: Creation, draft: ErrorSolutionDraft) -> Record | None:
        """The record with the id, or the first next in line that is not another solution's."""
        stored = await self.find_record(creation.namespace, creation.id)
        if stored is None or draft.error_solution_id or _same(stored, draft):
            return stored
        creation.id = id_after(creation.id)
        return await self._standing(creation, draft)

    async def _insert(self, creation: Creation, draft: ErrorSolutionDraft) -> SavedErrorSolution:
        namespace, solution_id = creation.namespace, creation.id
        indexed, review_origins = await asyncio.gather(
            self._indexer.vectors_of(search_text(draft.content)),
            self._policies.review_origins(namespace),
        )
        review = review_of_new(draft.content.origin, review_origins)
        solution = replace(self._made(namespace, solution_id, draft), review=review)
        record = error_solution_record(solution, self._time.sort_key(), indexed.vectors)
        await insert_new(self._store, ERROR_SOLUTIONS, creation.sign(record))
        await forget_older_logs(self._store, ERROR_SOLUTION, [record])
        return SavedErrorSolution(solution, created=True, truncated=indexed.text_truncated)

    async def _edited_into(self, namespace: str, draft: ErrorSolutionDraft) -> Record | None:
        """A solution that an edit made equal to this one, whatever its id."""
        edited: list[Condition] = [
            Equals("signature", draft.content.error.signature),
            Range("revision", gte=2),
        ]
        async for record in scan(self._store, ERROR_SOLUTIONS, namespace, edited):
            if _same(record, draft):
                return record
        return None

    def _made(self, namespace: str, solution_id: str, draft: ErrorSolutionDraft) -> ErrorSolution:
        now = self._time.now()
        given = draft.initial_success_rate
        rate = draft.content.first_success_rate if given is None else given
        return ErrorSolution(
            namespace=namespace,
            error_solution_id=solution_id,
            content=with_ttl(draft.content, draft.ttl, now),
            signature=draft.content.error.signature,
            outcomes=OutcomeStats(success_rate=rate),
            revision=1,
            create_time=now,
            update_time=now,
        )

    # --- editing ------------------------------------------------------------------------------

    async def update(
        self, namespace: str, error_solution_id: str, edit: ErrorSolutionEdit, etag: str
    ) -> tuple[ErrorSolution, bool]:
        """Apply an edit if ``etag`` matches (empty: any); True means the text was truncated.

        If an outcome is counted in the meantime, the edit is retried on top of it. Raises
        ErrorSolutionNotFoundError, EtagMismatchError, RequestInvalidError, OriginReservedError,
        OriginRaisedError, ContentionError.
        """

        async def attempt() -> tuple[ErrorSolution, bool]:
            record = await self.read_record(namespace, error_solution_id, vectors=True, etag=etag)
            solution = error_solution_from_record(record)
            old, now = solution.content, self._time.now()
            content = edit.apply(old, now)
            content = edit.editor.apply(old, content, self.spec.kind, error_solution_id)
            content.check()
            await read_aside(content.error_type, content.error_message)
            if content.expire_time != old.expire_time:
                check_expiry(ResourceKind.ERROR_SOLUTION, content.expire_time, now)
            if content == old:
                return solution, False
            texts = search_text(old), search_text(content)
            indexed = await self._indexer.vectors_after_edit(record, *texts)
            edited = replace(
                solution,
                content=content,
                signature=content.error.signature,
                revision=solution.revision + 1,
                update_time=max(now, solution.update_time),
                review=await self._policies.review_of_edit(solution, content, edit.editor),
            )
            if solution.outcomes == OutcomeStats(success_rate=old.first_success_rate):
                edited = replace(
                    edited, outcomes=OutcomeStats(success_rate=content.first_success_rate)
                )
            unchanged_fields = preserved_in_edits(record.payload)
            new = error_solution_record(
                edited, record.payload[SORT_KEY], indexed.vectors, unchanged_fields
            )
            await replace_as_read(
                self._store, ERROR_SOLUTIONS, record, new, "revision", STATS_REVISION
            )
            return edited, indexed.text_truncated

        return await compare_and_set(ResourceKind.ERROR_SOLUTION, error_solution_id, attempt)


def _same(record: Record, draft: ErrorSolutionDraft) -> bool:
    """Whether a record is currently the same solution of the same error."""
    stored = error_solution_from_record(record).content
    return same_solution_id(stored) == same_solution_id(draft.content)


def _there_already(
    draft: ErrorSolutionDraft, creation: Creation, record: Record
) -> SavedErrorSolution:
    """The result of saving an existing solution. Raises ErrorSolutionIdInUseError."""
    stored = error_solution_from_record(record)
    if creation.wrote(record):  # in a concurrent attempt
        return SavedErrorSolution(stored, created=True)
    if not draft.error_solution_id:
        unchanged = different_fields(stored.content, draft.content)
        return SavedErrorSolution(stored, created=False, unchanged_fields=unchanged)
    if not same_content(stored.content, draft.content):
        raise ErrorSolutionIdInUseError(stored.namespace, stored.error_solution_id)
    return SavedErrorSolution(stored, created=False)
