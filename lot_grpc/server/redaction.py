"""Takes secrets out of the texts of requests, before anything reads, compares or stores them.

Only texts are changed. What identifies something stays as it is: ids, namespaces, keys, etags,
cursors and filters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from google.protobuf.message import Message

from lot_grpc.domain.errors import RequestInvalidError, Violation
from lot_grpc.pb.lot.v1 import outcome_pb2, transfer_pb2
from lot_grpc.redaction import SecretFinder
from lot_grpc.server.call import Call, Handler, Method
from lot_grpc.server.codec.transfer import Reading, is_shortened, readable_form, row_from_pb
from lot_grpc.server.redactor import Plan, Redactor
from lot_grpc.server.server_state import ServerState
from lot_grpc.server.status import MAX_VIOLATIONS
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.telemetry.metrics import REDACTIONS

MOST_NOTICES: Final = 50
"""Fields with a notice of their own; a last notice counts the rest."""

_THREAD_BYTES: Final = 16 * 1024
"""Larger requests are searched in a thread: a MiB takes some 10 ms, or a second if it is nothing
but secrets."""


def redaction(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Redacts the requests of writes, and of reads whose query is stored in a receipt.

    A request that is repeated is the same again: request ids and the joining of repeats come after.
    """
    finder = state.guards.secrets
    if finder is None or not concerned(method):
        return handler
    imports = method.request_type is transfer_pb2.ImportRequest
    if not imports and "notices" not in method.response_type.DESCRIPTOR.fields_by_name:
        raise TypeError(f"{method.name} stores texts, but its response has no notices")
    redactor = Redactor(finder, method.request_type)

    async def redact(call: Call, message: Message) -> None:
        if message.ByteSize() > _THREAD_BYTES:
            found = await asyncio.to_thread(redactor.redact, message)
        else:
            found = redactor.redact(message)
        call.notices += notices_of(found)
        for _, rules in found:
            for rule in rules:
                REDACTIONS.add(rule)

    async def redacted(call: Call) -> Any:
        if method.client_streaming:

            async def each(message: Message) -> None:
                await redact(call, message)

            call.request.on_each(_refuse_secrets(finder) if imports else each)
        else:
            await redact(call, call.request)
        return await handler(call)

    return redacted


def concerned(method: Method) -> bool:
    """Whether texts of its requests are stored."""
    receipt = "retrieval_id" in method.response_type.DESCRIPTOR.fields_by_name
    return (method.writes or receipt) and Plan.of(method.request_type.DESCRIPTOR).has_texts


def notices_of(found: list[tuple[str, list[str]]]) -> list[outcome_pb2.Notice]:
    """A notice for each field that was changed: which, and the rules, never the secret."""
    notices = [
        outcome_pb2.Notice(
            code=outcome_pb2.NOTICE_CODE_REDACTED,
            field=field,
            message=f"redacted before it was stored: {', '.join(dict.fromkeys(rules))}",
        )
        for field, rules in found[:MOST_NOTICES]
    ]
    if more := len(found) - len(notices):
        text = f"{more} more fields were redacted"
        notices.append(outcome_pb2.Notice(code=outcome_pb2.NOTICE_CODE_REDACTED, message=text))
    return notices


def _refuse_secrets(finder: SecretFinder) -> Any:
    """The check of an import, whose records are stored as they were exported, or not at all.

    It searches what would be stored, which is the stored form: the readable form beside it may omit
    what an earlier version did not know.
    """
    redactor = Redactor(finder, transfer_pb2.ExportRecord)
    reading = Reading("", exact=False, collections=REGISTRY.exported, dimensions=0)

    def violations(
        read: Sequence[tuple[transfer_pb2.ExportRecord, Mapping[str, Any]]],
    ) -> Iterator[Violation]:
        for number, (shown, payload) in enumerate(read):
            for field, rules in secrets_in(redactor, shown, payload):
                yield Violation(
                    f"records[{number}].{field}",
                    f"redact.{rules[0]}",
                    "contains a secret, and an import stores records as exported: edit or "
                    "delete the record where it was exported, or import it with LOT_REDACT=false "
                    "and use `lot-grpc scan` to find what to edit",
                )

    async def check(request: Any) -> None:
        read, time_slice = [], TimeSlice()
        for number, record in enumerate(request.records):
            try:
                row = row_from_pb(record, f"records[{number}]", reading)
            except RequestInvalidError:
                return  # the servicer reads it in the same way, and refuses all of the request
            read.append((readable_form(row), row.record.payload))
            await time_slice.give_way()
        found = await asyncio.to_thread(lambda: list(violations(read)))
        if found:
            raise RequestInvalidError(found[:MAX_VIOLATIONS], len(found[MAX_VIOLATIONS:]))

    return check


def secrets_in(
    redactor: Redactor, record: Any, payload: Mapping[str, Any]
) -> list[tuple[str, list[str]]]:
    """Fields of an exported record with secrets, and the rules. The record stays as it is.

    ``payload``: what is stored of it. It is searched if the readable form shows no secret, since it
    has the same again, and if that omits long fields.
    """
    copy = transfer_pb2.ExportRecord()
    copy.CopyFrom(record)
    copy.ClearField("vectors")
    copy.ClearField("stored_form")
    found = redactor.redact(copy)
    if not found or is_shortened(record):
        found += redactor.search(payload, "stored_form", "row")
    return found
