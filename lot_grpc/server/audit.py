"""The audit layers: what a call did to which records, for the audit log.

A record has names, ids and outcomes, never contents: its ids are those of the request and response
fields that name records.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from lot_grpc.server.call import Call, Handler, Method
from lot_grpc.server.guards import AuditLog
from lot_grpc.server.server_state import ServerState

MAX_IDS: Final = 100
"""How many ids a record names; ``more_ids`` counts the others."""

_ID_FIELDS: Final = frozenset(
    f"{kind}_{ending}"
    for kind in (
        "decision", "episode", "error_solution", "feedback", "learning_event", "memory", "outcome",
        "pattern", "retrieval", "selection", "session", "trajectory",
    )
    for ending in ("id", "ids")
)  # fmt: skip
_NAMED_BY: Final = {
    "ReviewItem": "id",
    "ReviewResult": "id",
    "GetPreferenceRequest": "key",
    "PutPreferenceRequest": "key",
    "DeletePreferenceRequest": "key",
    "EraseSubjectRequest": "subject",
}
"""Messages whose records are named by another field."""

_FLAGS: Final = ("dry_run", "all_namespaces", "keep_namespaces")
_DEPTH: Final = 3

_ALWAYS: Final = frozenset({"AdminService.Export"})
"""Reads that are recorded like writes, because they return everything."""
_REFUSED: Final = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED"})
"""Codes with which any call is recorded."""

Reader: TypeAlias = Callable[[Any], Iterator[tuple[str, str]]]


def audit(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Records each call before its response is sent, or an abandoned write once it is done."""
    log = state.guards.audit
    if log is None:
        return handler
    recorded = method.writes or log.reads or method.name in _ALWAYS

    async def audited(call: Call) -> Any:
        start = time.perf_counter()
        call.audited = recorded
        result = None
        try:
            result = await handler(call)
            return result
        finally:
            if call.abandoned and call.work is not None and not call.work.done():
                call.work.add_done_callback(partial(_late, log, call, start))
            elif recorded or call.code in _REFUSED:
                log.write(_record(call, start, result))

    return audited


def audit_open(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Records the opening of a stream, once it is authorized."""
    log = state.guards.audit
    if log is None or not method.streaming:
        return handler

    async def opened(call: Call) -> Any:
        def note(request: Any) -> None:
            call.first_request = request
            call.namespace = request.namespace
            if call.audited:
                log.write({"event": "open"} | _named(call) | _ids(call, b""))

        if method.client_streaming:
            call.request.on_first(note)
        else:
            note(call.request)
        return await handler(call)

    return opened


def _late(log: AuditLog, call: Call, start: float, work: asyncio.Task[Any]) -> None:
    """Record a write whose caller has left, with its true outcome."""
    done = work.cancelled() or work.exception() is not None
    log.write(_record(call, start, None if done else work.result()) | {"late": True})


def _record(call: Call, start: float, result: bytes | None) -> dict[str, object]:
    record = _named(call) | _ids(call, result or b"")
    if call.method.streaming:
        record |= {"event": "end", "received": call.messages_received, "sent": call.messages_sent}
    record |= {"code": call.code, "reason": call.reason, "why": call.why}
    record["duration_ms"] = round((time.perf_counter() - start) * 1000, 3)
    return {key: value for key, value in record.items() if value != ""}


def _named(call: Call) -> dict[str, object]:
    known = call.method.rule is not None  # else the caller chose the name
    return {
        "principal": call.principal.id,
        "name": call.principal.name,
        "peer": call.peer,
        "method": call.method.name if known else "",
        "namespace": call.namespace,
        "call_id": call.id,
    }


def _ids(call: Call, response: bytes) -> dict[str, object]:
    """The ids in the request and the response, by field, and flags that change what was done."""
    request = call.request if isinstance(call.request, Message) else call.first_request
    found: dict[str, dict[str, None]] = {}
    number = 0
    messages = [one for one in (request, _parsed(call, response)) if one is not None]
    for message in messages:
        for name, value in _reader(message.DESCRIPTOR, _DEPTH)(message):
            kept = found.setdefault(name.removesuffix("s"), {})
            if value not in kept:
                number += 1
                if number <= MAX_IDS:
                    kept[value] = None
    record: dict[str, object] = {}
    if ids := {name: [*kept] for name, kept in found.items() if kept}:
        record["ids"] = ids
    if number > MAX_IDS:
        record["more_ids"] = number - MAX_IDS
    return record | {flag: True for flag in _FLAGS if getattr(request, flag, False)}


def _parsed(call: Call, response: bytes) -> Message | None:
    return call.method.response_type.FromString(response) if response else None


@cache
def _reader(descriptor: Descriptor, depth: int) -> Reader:
    """What reads the ids of messages of a type; made once for each type."""
    named = _ID_FIELDS | {_NAMED_BY.get(descriptor.name, "")}
    names, inner = [], []
    for field in descriptor.fields:
        if field.message_type is None:
            if field.name in named and field.type == field.TYPE_STRING:
                names.append((field.name, field.is_repeated))
        elif depth and field.message_type.full_name.startswith("lot."):
            if field.message_type.GetOptions().map_entry:
                continue
            reader = _reader(field.message_type, depth - 1)
            inner.append((field.name, field.is_repeated, reader))

    def read(message: Any) -> Iterator[tuple[str, str]]:
        for name, repeated in names:
            value = getattr(message, name)
            for one in value if repeated else (value,):
                if one:
                    yield name, one
        for name, repeated, reader in inner:
            if repeated:
                for one in getattr(message, name):
                    yield from reader(one)
            elif message.HasField(name):
                yield from reader(getattr(message, name))

    return read
