"""The messages of a session: appended once, numbered without gaps.

The row holds the latest message itself, and each older one is a part. So an append first copies
that one out of the row, insert-only under its sequence, and then one compare-and-set of the row
brings the new message, its sequence and the request that it came with, all or nothing. A reader who
has read the row finds all older messages; a repeat finds its request in the row until that is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from lot_grpc.domain.errors import ContentionError, SessionNotFoundError
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.session import DEFAULT_TTL, SessionMessage
from lot_grpc.ports import Range, VectorStore
from lot_grpc.services.ledger import Ask, Entry, Ledger
from lot_grpc.services.records.collections import REQUESTS, SESSION_PARTS
from lot_grpc.services.records.sessions import (
    MESSAGE,
    SEQUENCE,
    SessionRow,
    kind_of,
    message_payload,
    message_record,
)
from lot_grpc.services.sessions.rows import NO_TERMS, RESOURCE_KIND, TRIES, SessionRows, Terms
from lot_grpc.services.settling import settled_among
from lot_grpc.services.time_slice import pause_before_retry
from lot_grpc.services.time_source import TimeSource
from lot_grpc.services.tombstones import Tombstones

_METHOD = "AppendSessionMessage"
_GONE = "it was cleared or expired after this request's first attempt; use a new request_id"


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message to append, and what the session should be like from then on."""

    session_id: str
    message: SessionMessage
    terms: Terms = NO_TERMS
    request_id: str = ""

    def hash(self) -> str:
        """The same for the same request."""
        told = asdict(self.message)
        told["metadata"] = self.message.metadata.hex()
        return content_hash([self.session_id, told, self.terms.max_messages, self.terms.ttl])


@dataclass(frozen=True, slots=True)
class Appended:
    """A message as it was appended, and how its session stands."""

    message: SessionMessage
    message_count: int
    expire_time: int


class SessionMessages:
    """Appends messages."""

    def __init__(
        self,
        store: VectorStore,
        time_source: TimeSource,
        ledger: Ledger,
        tombstones: Tombstones,
        rows: SessionRows,
    ) -> None:
        self._store = store
        self._time = time_source
        self._ledger = ledger
        self._tombstones = tombstones
        self._rows = rows

    async def append(self, namespace: str, draft: MessageDraft) -> Appended:
        """Append a message, and make the session if there is none.

        Raises RequestIdReusedError, ContentionError; SessionNotFoundError where a repeat meets
        another session than its first try, or none.
        """
        async with self._rows.turn(namespace, draft.session_id):
            entry = await self._begin(namespace, draft) if draft.request_id else None
            for attempt in range(TRIES):
                if entry is not None and entry.result is not None:
                    return await self._told(namespace, draft, entry)
                generation = entry.plan["generation"] if entry is not None else 0
                row = await self._rows.open(namespace, draft.session_id, draft.terms, generation)
                if row is not None and entry is not None:
                    entry = await self._as_it_stands(row, draft, entry)
                if row is not None and (entry is None or entry.result is None):
                    appended = await self._append(row, draft, entry)
                    if appended is not None:
                        return appended
                    await pause_before_retry(attempt)
        raise ContentionError(RESOURCE_KIND, draft.session_id)

    async def trim(self, row: SessionRow) -> None:
        """Delete messages that fell out of the window or were cleared."""
        gone = [*kind_of(row, MESSAGE), Range(SEQUENCE, lte=row.gone_sequence)]
        await self._store.delete(SESSION_PARTS, row.namespace, gone)

    # --- requests -----------------------------------------------------------------------------

    async def _begin(self, namespace: str, draft: MessageDraft) -> Entry:
        """Enter the request with the generation that it appends to. Raises SessionNotFoundError."""
        row = await self._rows.find(namespace, draft.session_id)
        entry = await self._ledger.begin(self._ask(namespace, draft, row))
        if entry.first or entry.result is not None:
            return entry
        if row is not None and row.generation == entry.plan["generation"]:
            return entry
        if await self._may_be_gone(namespace, draft, entry):
            raise SessionNotFoundError(namespace, draft.session_id, _GONE)
        return entry

    def _ask(self, namespace: str, draft: MessageDraft, row: SessionRow | None) -> Ask:
        generation = row.generation if row is not None else self._time.sort_key()
        plan = {"generation": generation, "existed": row is not None}
        return Ask(namespace, _METHOD, draft.request_id, draft.hash(), plan)

    async def _may_be_gone(self, namespace: str, draft: MessageDraft, entry: Entry) -> bool:
        """Whether the session of the first try, which is not there, may have been there since."""
        ttl = draft.terms.ttl or DEFAULT_TTL
        if entry.plan["existed"] or self._time.now() >= entry.create_time + ttl:
            return True
        stone = await self._tombstones.find(namespace, RESOURCE_KIND, draft.session_id)
        return stone is not None and stone.delete_time >= entry.create_time

    async def _as_it_stands(self, row: SessionRow, draft: MessageDraft, entry: Entry) -> Entry:
        """The request as it is now that the row was read: another try may have done it."""
        if entry.point not in row.unsettled:
            done = await settled_among(self._store, REQUESTS, row.namespace, [entry.point], "done")
            if done:
                entry = await self._ledger.begin(self._ask(row.namespace, draft, row))
        if entry.result is None and entry.plan["generation"] != row.generation:
            plan = {"generation": row.generation, "existed": True}
            entry = await self._ledger.replan(entry, plan)
        return entry

    async def _told(self, namespace: str, draft: MessageDraft, entry: Entry) -> Appended:
        """The answer to a repeat of what is done. Raises SessionNotFoundError."""
        row = await self._rows.find(namespace, draft.session_id)
        if row is None or row.generation != entry.plan["generation"] or entry.result is None:
            raise SessionNotFoundError(namespace, draft.session_id, _GONE)
        return _appended(draft, row, entry.result["place"])

    # --- steps --------------------------------------------------------------------------------

    async def _append(
        self, row: SessionRow, draft: MessageDraft, entry: Entry | None
    ) -> Appended | None:
        """Append behind the latest message, unless the request did; None if others were faster."""
        if entry is not None and entry.point in row.unsettled:
            return await self._finish(draft, row, entry, row.unsettled[entry.point], trim=True)
        given, sequence = draft.message, row.last_sequence + 1
        time = self._time.now() if given.message_time is None else given.message_time
        message = replace(given, message_time=time, sequence=sequence)
        window = draft.terms.max_messages or row.max_messages
        gone = max(row.gone_sequence, sequence - window)
        copied = [message_record(row, row.latest)] if row.latest and gone < sequence - 1 else []
        await self._store.insert(SESSION_PARTS, copied)
        unsettled = await self.unsettled(row)
        if entry is not None:
            unsettled[entry.point] = (sequence, time)
        renewed = await self._rows.renew(
            row,
            draft.terms,
            last_sequence=sequence,
            gone_sequence=gone,
            latest=message_payload(message),
            unsettled=unsettled,
        )
        if renewed is not None:
            trim = gone > row.gone_sequence
            return await self._finish(draft, renewed, entry, (sequence, time), trim=trim)
        if copied:
            await self._rows.took_back(row, [copied[0].id])
        return None

    async def unsettled(self, row: SessionRow) -> dict[str, tuple[int, int]]:
        """The requests that the row must go on to know: those that are not done."""
        points = list(row.unsettled)
        done = await settled_among(self._store, REQUESTS, row.namespace, points, "done")
        return {point: place for point, place in row.unsettled.items() if point not in done}

    async def _finish(
        self,
        draft: MessageDraft,
        row: SessionRow,
        entry: Entry | None,
        place: tuple[int, int],
        *,
        trim: bool,
    ) -> Appended:
        if trim:
            await self.trim(row)
        if entry is not None:
            await self._ledger.finish(entry, {"place": list(place)})
        return _appended(draft, row, place)


def _appended(draft: MessageDraft, row: SessionRow, place: Sequence[int]) -> Appended:
    message = replace(draft.message, sequence=place[0], message_time=place[1])
    return Appended(message, row.message_count, row.expire_time)
