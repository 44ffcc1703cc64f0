"""The messages of a session: appended once, numbered without gaps.

A message takes the number behind the last one by being inserted there: insert-only decides between
two. Then the row is renewed to that number. Whoever finds numbers taken that the row does not know
yet, as a process leaves them that died in between, takes them along in its own renewal, together
with the requests that they came with. So each message that a request appended is at any time either
behind the row's last number, where it is found, or known to the row until the request is done. A
repeat finds it, even when the message has fallen out of the window since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from lot_grpc.domain.errors import ContentionError, SessionNotFoundError
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.session import DEFAULT_TTL, SessionMessage
from lot_grpc.ports import Order, Range, Record, VectorStore
from lot_grpc.services.ledger import Ask, Entry, Ledger
from lot_grpc.services.moments import Moments
from lot_grpc.services.pacing import pause_before_retry
from lot_grpc.services.records.collections import REQUESTS, SESSION_PARTS
from lot_grpc.services.records.sessions import (
    MESSAGE,
    REQUEST,
    SEQUENCE,
    SessionRow,
    kind_of,
    message_record,
)
from lot_grpc.services.sessions.rows import NO_TERMS, NOUN, TRIES, SessionRows, Terms
from lot_grpc.services.settling import settled_among
from lot_grpc.services.tombstones import Tombstones

_METHOD = "AppendSessionMessage"
_CLAIMS = 5
_AHEAD = 1000
_IN_ORDER = Order(SEQUENCE)
_TRIED_BEFORE = "it was cleared or lapsed after this request's first try; use a new request_id"


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


@dataclass(frozen=True, slots=True)
class _Own:
    """The place of the message that is being appended."""

    generation: int
    point: str
    request: str
    sequence: int
    message_time: int


class SessionMessages:
    """Appends messages."""

    def __init__(
        self,
        store: VectorStore,
        moments: Moments,
        ledger: Ledger,
        tombstones: Tombstones,
        rows: SessionRows,
    ) -> None:
        self._store = store
        self._moments = moments
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
            if entry is not None and entry.result is not None:
                row = await self._rows.find(namespace, draft.session_id)
                if row is None or row.generation != entry.plan["generation"]:
                    raise SessionNotFoundError(namespace, draft.session_id, _TRIED_BEFORE)
                return _appended(draft, row, entry.result["place"])
            return await self._append(namespace, draft, entry)

    async def ahead(self, row: SessionRow) -> list[Record]:
        """Messages that were written behind the last one the row knows, in order."""
        where = [*kind_of(row, MESSAGE), Range(SEQUENCE, gt=row.last_sequence)]
        return await self._store.scroll(
            SESSION_PARTS,
            row.namespace,
            where,
            limit=_AHEAD,
            order=_IN_ORDER,
            payload=(SEQUENCE, REQUEST, "message_time"),
        )

    async def unsettled(
        self, row: SessionRow, ahead: Sequence[Record]
    ) -> dict[str, tuple[int, int]]:
        """The requests that the row must know with these messages: those that are not done."""
        places: dict[str, tuple[int, int]] = {**row.unsettled, **_places(ahead)}
        done = await settled_among(self._store, REQUESTS, row.namespace, list(places), "done")
        return {point: place for point, place in places.items() if point not in done}

    async def trim(self, row: SessionRow) -> None:
        """Delete messages that fell out of the window or were cleared."""
        gone = [*kind_of(row, MESSAGE), Range(SEQUENCE, lte=row.gone_sequence)]
        await self._store.delete(SESSION_PARTS, row.namespace, gone)

    # --- steps --------------------------------------------------------------------------------

    async def _begin(self, namespace: str, draft: MessageDraft) -> Entry:
        """Enter the request with the generation that it appends to. Raises SessionNotFoundError."""
        row = await self._rows.find(namespace, draft.session_id)
        generation = row.generation if row else self._moments.sort_key()
        plan = {"generation": generation, "existed": row is not None}
        ask = Ask(namespace, _METHOD, draft.request_id, draft.hash(), plan)
        entry = await self._ledger.begin(ask)
        if entry.first or entry.result is not None:
            return entry
        if row is not None and row.generation == entry.plan["generation"]:
            return entry
        if await self._may_be_gone(namespace, draft, entry):
            raise SessionNotFoundError(namespace, draft.session_id, _TRIED_BEFORE)
        return entry

    async def _may_be_gone(self, namespace: str, draft: MessageDraft, entry: Entry) -> bool:
        """Whether the session of the first try, which is not there, may have been there since."""
        ttl = draft.terms.ttl or DEFAULT_TTL
        if entry.plan["existed"] or self._moments.now() >= entry.create_time + ttl:
            return True
        stone = await self._tombstones.find(namespace, NOUN, draft.session_id)
        return stone is not None and stone.delete_time >= entry.create_time

    async def _append(self, namespace: str, draft: MessageDraft, entry: Entry | None) -> Appended:
        own: _Own | None = None
        for attempt in range(TRIES):
            generation = entry.plan["generation"] if entry is not None else 0
            row = await self._rows.open(namespace, draft.session_id, draft.terms, generation)
            if row is not None:
                if entry is not None and row.generation != generation:
                    plan = {"generation": row.generation, "existed": True}
                    entry = await self._ledger.replan(entry, plan)
                if own is None and entry is not None and entry.point in row.unsettled:
                    return await self._finish(draft, row, entry, row.unsettled[entry.point])
                if own is None or own.generation != row.generation:
                    own = await self._place(row, draft, entry)
                if own is not None:
                    renewed = await self._renew(row, draft, own)
                    if renewed is not None:
                        place = (own.sequence, own.message_time)
                        return await self._finish(draft, renewed, entry, place)
                    if await self._rows.took_back(row, [own.point]):
                        own = None
            await pause_before_retry(attempt)
        raise ContentionError(NOUN, draft.session_id)

    async def _place(
        self, row: SessionRow, draft: MessageDraft, entry: Entry | None
    ) -> _Own | None:
        """Write the message behind all that are there, unless an earlier try did.

        None if others are faster each time.
        """
        request = entry.point if entry is not None else ""
        if entry is not None and not entry.first:
            for record in await self.ahead(row):
                if record.payload.get(REQUEST) == request:
                    return _own(row, record)
        given = draft.message
        time = given.message_time
        message = replace(given, message_time=self._moments.now() if time is None else time)
        last = row.last_sequence
        for _ in range(_CLAIMS):
            record = message_record(row, replace(message, sequence=last + 1), request)
            if record.id in await self._store.insert(SESSION_PARTS, [record]):
                return _own(row, record)
            ahead = await self.ahead(row)
            if not ahead:  # it is the row that is behind
                return None
            last = ahead[-1].payload[SEQUENCE]
        return None

    async def _renew(self, row: SessionRow, draft: MessageDraft, own: _Own) -> SessionRow | None:
        """Renew the row up to the message, and take along what lies between."""
        between: list[Record] = []
        if own.sequence > row.last_sequence + 1:
            ahead = await self.ahead(row)
            between = [one for one in ahead if one.payload[SEQUENCE] < own.sequence]
        unsettled = await self.unsettled(row, between)
        if own.request:
            unsettled[own.request] = (own.sequence, own.message_time)
        last = max(row.last_sequence, own.sequence)
        return await self._rows.renew(row, draft.terms, last_sequence=last, unsettled=unsettled)

    async def _finish(
        self,
        draft: MessageDraft,
        row: SessionRow,
        entry: Entry | None,
        place: tuple[int, int],
    ) -> Appended:
        if row.gone_sequence > row.cleared_sequence:
            await self.trim(row)
        if entry is not None:
            await self._ledger.finish(entry, {"place": list(place)})
        return _appended(draft, row, place)


def _own(row: SessionRow, record: Record) -> _Own:
    payload = record.payload
    request = payload.get(REQUEST, "")
    return _Own(row.generation, record.id, request, payload[SEQUENCE], payload["message_time"])


def _places(messages: Sequence[Record]) -> dict[str, tuple[int, int]]:
    """Where the messages that came by a request are."""
    return {
        one.payload[REQUEST]: (one.payload[SEQUENCE], one.payload["message_time"])
        for one in messages
        if REQUEST in one.payload
    }


def _appended(draft: MessageDraft, row: SessionRow, place: Sequence[int]) -> Appended:
    message = replace(draft.message, sequence=place[0], message_time=place[1])
    return Appended(message, row.message_count, row.expire_time)
