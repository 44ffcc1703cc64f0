"""The messages of a session: appended once, numbered without gaps.

The row holds the latest message itself; each older one is a part. An append first copies that
message out of the row, insert-only under its sequence; then one compare-and-set of the row stores
the new message, its sequence and its request, all or nothing. A reader of the row finds all older
messages; a repeat finds its request in the row until it is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import SessionNotFoundError
from lot_grpc.domain.quota import Usage, payload_bytes
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.domain.session import DEFAULT_TTL, SessionMessage
from lot_grpc.kernel.compare_and_set import compare_and_set
from lot_grpc.kernel.idempotency import DONE, IdempotencyKey, IdempotencyRecord
from lot_grpc.kernel.intents import Journal, Mark
from lot_grpc.ports import Range
from lot_grpc.services.records.collections import REQUESTS, SESSION_PARTS
from lot_grpc.services.records.sessions import (
    MESSAGE,
    SEQUENCE,
    SessionRow,
    kind_of,
    message_payload,
    message_record,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.sessions.rows import NO_TERMS, SessionRows, Terms

_METHOD = "AppendSessionMessage"
_GONE = "it was cleared or expired after this request's first attempt; use a new request_id"


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message to append, and the settings of the session from then on."""

    session_id: str
    message: SessionMessage
    terms: Terms = NO_TERMS
    request_id: str = ""

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)


@dataclass(frozen=True, slots=True)
class Appended:
    """An appended message, and the state of its session."""

    message: SessionMessage
    message_count: int
    expire_time: int


class SessionMessages:
    """Appends messages."""

    def __init__(self, runtime: Runtime, rows: SessionRows) -> None:
        self._store = runtime.store
        self._time = runtime.time
        self._idempotency = runtime.idempotency
        self._tombstones = runtime.tombstones
        self._quotas = runtime.stack.quotas
        self._rows = rows
        self._requests = Journal(runtime.store, REQUESTS, Mark(DONE))

    async def append(self, namespace: str, draft: MessageDraft) -> Appended:
        """Append a message, creating the session if it does not exist.

        Raises RequestIdReusedError, ContentionError; SessionNotFoundError where a repeat meets
        another session than its first try, or none.
        """
        async with self._rows.turn(namespace, draft.session_id):
            entry = await self._begin(namespace, draft)

            async def attempt() -> Appended:
                nonlocal entry
                if entry.result is not None:
                    return await self._appended_before(namespace, draft, entry)
                generation = entry.plan["generation"]
                row = await self._rows.open(namespace, draft.session_id, draft.terms, generation)
                entry = await self._as_it_stands(row, draft, entry)
                if entry.result is not None:
                    return await self._appended_before(namespace, draft, entry)
                return await self._append(row, draft, entry)

            if entry.result is not None:
                return await self._appended_before(namespace, draft, entry)

            async def measure() -> Usage:
                row, growth = await self._rows.measured(namespace, draft.session_id)
                if entry.point in row.pending:  # an earlier try appended it
                    return growth
                return growth + Usage(bytes=payload_bytes(message_payload(draft.message)))

            async with self._quotas.reserved(namespace, measure):
                return await compare_and_set(ResourceKind.SESSION, draft.session_id, attempt)

    async def trim(self, row: SessionRow) -> None:
        """Delete messages that left the window or were cleared."""
        gone = [*kind_of(row, MESSAGE), Range(SEQUENCE, lte=row.gone_sequence)]
        await self._store.delete(SESSION_PARTS, row.namespace, gone)

    # --- requests -----------------------------------------------------------------------------

    async def _begin(self, namespace: str, draft: MessageDraft) -> IdempotencyRecord:
        """Enter the request with the generation that it appends to. Raises SessionNotFoundError."""
        row = None
        if draft.request_id:
            row = await self._rows.find(namespace, draft.session_id)
        entry = await self._idempotency.begin(self._key(namespace, draft, row))
        if entry.first or entry.result is not None:
            return entry
        if row is not None and row.generation == entry.plan["generation"]:
            return entry
        if await self._may_be_gone(namespace, draft, entry):
            raise SessionNotFoundError(namespace, draft.session_id, _GONE)
        return entry

    def _key(self, namespace: str, draft: MessageDraft, row: SessionRow | None) -> IdempotencyKey:
        generation = row.generation if row is not None else self._time.sort_key()
        plan = {"generation": generation, "existed": row is not None}
        return IdempotencyKey(namespace, _METHOD, draft.request_id, draft.hash(), plan)

    async def _may_be_gone(
        self, namespace: str, draft: MessageDraft, entry: IdempotencyRecord
    ) -> bool:
        """Whether the session of the first try, which is not there, may have been there since."""
        ttl = draft.terms.ttl or DEFAULT_TTL
        if entry.plan["existed"] or self._time.now() >= entry.create_time + ttl:
            return True
        stone = await self._tombstones.find(namespace, ResourceKind.SESSION, draft.session_id)
        return stone is not None and stone.delete_time >= entry.create_time

    async def _as_it_stands(
        self, row: SessionRow, draft: MessageDraft, entry: IdempotencyRecord
    ) -> IdempotencyRecord:
        """The request as it is now that the row was read: another try may have done it."""
        own = {entry.point} - row.pending.keys()
        if entry.point and await self._requests.done(row.namespace, own):
            entry = await self._idempotency.begin(self._key(row.namespace, draft, row))
        if entry.result is None and entry.plan["generation"] != row.generation:
            plan = {"generation": row.generation, "existed": True}
            entry = await self._idempotency.replan(entry, plan)
        return entry

    async def _appended_before(
        self, namespace: str, draft: MessageDraft, entry: IdempotencyRecord
    ) -> Appended:
        """The answer to a repeat of what is done. Raises SessionNotFoundError."""
        row = await self._rows.find(namespace, draft.session_id)
        if row is None or row.generation != entry.plan["generation"] or entry.result is None:
            raise SessionNotFoundError(namespace, draft.session_id, _GONE)
        return _appended(draft, row, entry.result["place"])

    # --- steps --------------------------------------------------------------------------------

    async def _append(
        self, row: SessionRow, draft: MessageDraft, entry: IdempotencyRecord
    ) -> Appended:
        """Append after the latest message, unless the request did. Raises ConflictError."""
        if entry.point in row.pending:
            return await self._finish(draft, row, entry, row.pending[entry.point], trim=True)
        given, sequence = draft.message, row.last_sequence + 1
        time = self._time.now() if given.message_time is None else given.message_time
        message = replace(given, message_time=time, sequence=sequence)
        window = draft.terms.max_messages or row.max_messages
        gone = max(row.gone_sequence, sequence - window)
        copied = [message_record(row, row.latest)] if row.latest and gone < sequence - 1 else []
        await self._store.insert(SESSION_PARTS, copied)
        pending = await self.pending(row)
        if entry.point:
            pending[entry.point] = (sequence, time)
        renewed = await self._rows.renew(
            row,
            draft.terms,
            [one.id for one in copied],
            last_sequence=sequence,
            gone_sequence=gone,
            latest=message_payload(message),
            pending=pending,
        )
        trim = gone > row.gone_sequence
        return await self._finish(draft, renewed, entry, (sequence, time), trim=trim)

    async def pending(self, row: SessionRow) -> dict[str, tuple[int, int]]:
        """The requests that the row must still remember: those that are not done."""
        done = await self._requests.done(row.namespace, row.pending)
        return {point: place for point, place in row.pending.items() if point not in done}

    async def _finish(
        self,
        draft: MessageDraft,
        row: SessionRow,
        entry: IdempotencyRecord,
        place: tuple[int, int],
        *,
        trim: bool,
    ) -> Appended:
        if trim:
            await self.trim(row)
        await self._idempotency.finish(entry, {"place": list(place)})
        return _appended(draft, row, place)


def _appended(draft: MessageDraft, row: SessionRow, place: Sequence[int]) -> Appended:
    message = replace(draft.message, sequence=place[0], message_time=place[1])
    return Appended(message, row.message_count, row.expire_time)
