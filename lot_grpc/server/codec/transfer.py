"""Records of an export ⇄ rows of the store."""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from google.protobuf.message import DecodeError, Message

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import RequestInvalidError, invalid
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.domain.transfer import ImportConflictPolicy
from lot_grpc.pb.lot.v1 import preference_pb2, session_pb2
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from lot_grpc.ports import CollectionSpec, MultiVector, Payload, Record, SparseVector, Vector
from lot_grpc.server.answers import ANSWER_BYTES, clear_long
from lot_grpc.server.checking import checker_of
from lot_grpc.server.codec.resources import TO_PB
from lot_grpc.server.codec.sessions import (
    add_value,
    message_to_pb,
    revision_to_pb,
)
from lot_grpc.server.codec.values import EnumCodec
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.counters import uncounted
from lot_grpc.services.records.sessions import LATEST, PART, VALUE, message_from_payload
from lot_grpc.services.registry import ExportedCollection
from lot_grpc.services.transfer.rows import Row

CONFLICT = EnumCodec(pb.ImportConflictPolicy.DESCRIPTOR, ImportConflictPolicy)

_OF, _ROW, _BIRTH, _CLAIMED, _SHORT = "of", "row", "birth", "claimed", "short"
"""Keys of ``stored_form``: the collection, the payload as JSON text (a Struct would turn integers
into doubles), the sort key of the record it belongs to, whether it is the one pattern with its
content, and whether long fields are omitted since the record would be too large with them."""

_LONG = 256
"""Fields over this many bytes are omitted from a record that would be too large."""

_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


def _message(kind: ExportedCollection, record: Record) -> tuple[str, Message | None]:
    """The field of a record for its resource, and the resource. Empty and None: it has none.

    A record without a resource is read anyway, which shows whether it is intact.
    """
    thing, resource_kind = kind.read(record), kind.resource_kind
    if kind.is_thing:
        message = TO_PB[resource_kind](thing)
        wrap = _WRAPPED.get(resource_kind)
        return resource_kind, message if wrap is None else wrap(record, message)
    make = _PARTS.get(resource_kind)
    return ("", None) if make is None else (resource_kind, make(record, thing))


def _memory(record: Record, message: Any) -> Message:
    """A memory without its indexing state, which concerns only this store."""
    message.ClearField("indexing")
    return cast("Message", message)


def _event(record: Record, message: Any) -> Message:
    return pb.ExportedEpisodeEvent(episode_id=record.payload["episode_id"], event=message)


def _preference(record: Record, message: Any) -> Message:
    return pb.ExportedPreference(preference=message)


def _session(record: Record, message: Any) -> Message:
    """A session with the latest message, which its row holds."""
    if latest := record.payload[LATEST]:
        message.messages.append(message_to_pb(message_from_payload(latest)))
    return cast("Message", message)


_WRAPPED: Mapping[str, Callable[[Record, Any], Message]] = {
    ResourceKind.MEMORY: _memory,
    ResourceKind.EPISODE_EVENT: _event,
    ResourceKind.PREFERENCE: _preference,
    ResourceKind.SESSION: _session,
}
"""What an export contains of a resource besides its message."""


def _revision(record: Record, revision: Any) -> Message:
    key = preference_pb2.Preference(key=record.payload["key"])
    return pb.ExportedPreference(preference=key, history=[revision_to_pb(revision)])


def _part(record: Record, part: Any) -> Message:
    payload = record.payload
    message = session_pb2.Session(session_id=payload["session_id"], namespace=record.namespace)
    if payload[PART] == VALUE:
        add_value(message, payload["key"], part)
    else:
        message.messages.append(message_to_pb(part))
    return message


_PARTS: Mapping[str, Callable[[Record, Any], Message]] = {
    ResourceKind.PREFERENCE: _revision,
    ResourceKind.SESSION: _part,
}
"""The kinds of which an export also contains the parts."""


def readable_form(row: Row) -> pb.ExportRecord:
    """The record of a row without its stored form: what calls return of it."""
    message = pb.ExportRecord(namespace=row.record.namespace)
    field, made = _message(row.kind, row.record)
    if made is not None:
        getattr(message, field).CopyFrom(made)
    return message


def row_to_pb(row: Row, *, vectors: bool) -> pb.ExportRecord:
    """The record of a row."""
    stored = row.record
    message = readable_form(row)
    field = message.WhichOneof("record")
    stored_form = message.stored_form.fields
    stored_form[_OF].string_value = row.kind.collection
    stored_form[_ROW].string_value = json.dumps(
        stored.payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    if row.birth:
        stored_form[_BIRTH].number_value = row.birth
    if row.claimed:
        stored_form[_CLAIMED].bool_value = True
    if vectors:
        for name, vector in stored.vectors.items():
            _fill_vector(message.vectors[name], vector)
    if field and message.ByteSize() > ANSWER_BYTES:
        deque(clear_long(getattr(message, field), _LONG), 0)
        stored_form[_SHORT].bool_value = True
    return message


def is_shortened(message: pb.ExportRecord) -> bool:
    """Whether its readable form omits long fields, which only its stored form has."""
    return _SHORT in message.stored_form.fields


def _fill_vector(message: pb.ExportedVector, vector: Vector) -> None:
    if isinstance(vector, SparseVector):
        message.indices.extend(vector.indices)
        message.values.extend(vector.values)
    elif isinstance(vector, MultiVector):
        message.vector_count = len(vector.vectors)
        for one in vector.vectors:
            message.values.extend(one)
    else:
        message.values.extend(vector)


# --- back -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """How the records of one import are read.

    ``namespace``: the target of all records; empty: each keeps its own. ``exact``: this version
    wrote them, so resources must match what this server would export. ``collections`` are those
    that are imported. ``dimensions`` of the vectors included; 0: vectors are ignored.
    """

    namespace: str
    exact: bool
    collections: Mapping[str, ExportedCollection]
    dimensions: int


def row_from_pb(message: pb.ExportRecord, path: str, reading: Reading) -> Row:
    """The row of a record. Raises RequestInvalidError, which names the record by its path."""
    stored_form = message.stored_form.fields
    if _OF not in stored_form or _ROW not in stored_form:
        raise invalid(
            f"{path}.stored_form",
            "record.stored_form",
            "must be as exported; store other records with the RPCs for their kind "
            "(SavePattern, CreateMemory, …)",
        )
    kind = reading.collections.get(stored_form[_OF].string_value)
    if kind is None:
        raise invalid(
            f"{path}.stored_form.{_OF}",
            "record.kind",
            "is not a kind of record that can be imported",
        )
    was = namespace_or_default(message.namespace)
    if not _NAMESPACE.fullmatch(was):
        raise invalid(f"{path}.namespace", "string.pattern", "is not a valid namespace")
    payload = _payload(kind, stored_form[_ROW].string_value, path)
    birth = int(stored_form[_BIRTH].number_value) if _BIRTH in stored_form else 0
    try:
        _check(kind, message, Record("", was, payload), exact=reading.exact)
        namespace = reading.namespace or was
        point = kind.point(namespace, payload)
    except RequestInvalidError as error:
        [found] = error.violations
        rule = found.rule or "record.agrees"
        raise invalid(f"{path}.{found.field}", rule, found.description) from None
    except (KeyError, TypeError, ValueError, AttributeError, DecodeError) as error:
        raise _broken(path, f"is not a record of {kind.collection}") from error
    vectors = _vectors(message, kind, path, reading)
    record = Record(point, namespace, payload, vectors)
    return Row(kind, record, birth, _CLAIMED in stored_form and stored_form[_CLAIMED].bool_value)


def _payload(kind: ExportedCollection, text: str, path: str) -> Payload:
    try:
        payload = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict) or not _is_number(payload.get(SORT_KEY, 0)):
        raise _broken(path, "is not the JSON object of a record")
    if lacking := [key for key in kind.rule.required if key not in payload]:
        raise _broken(path, f"lacks {', '.join(lacking)}")
    counters = uncounted() if kind.is_thing and kind.resource.counted else {}
    return kind.as_done({**counters, **payload})


def _broken(path: str, why: str) -> RequestInvalidError:
    return invalid(f"{path}.stored_form.{_ROW}", "record.whole", f"{why}; import it as exported")


def _refused(name: str) -> float:
    raise ValueError(name)


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _check(
    kind: ExportedCollection, message: pb.ExportRecord, record: Record, *, exact: bool
) -> None:
    """Check that the resource agrees with the stored form it is imported from."""
    field, made = _message(kind, record)
    given = message.WhichOneof("record") or ""
    if given != field:
        raise invalid(given or field, "", f"must be {field or 'unset'}, as in stored_form")
    if made is None:
        return
    for one in checker_of(type(made)).names(made)[:1]:
        why = f"{one.description}; rename it where it was exported"
        raise invalid(f"{field}.{one.field}", one.rule, why)
    if is_shortened(message):
        deque(clear_long(made, _LONG), 0)
    thing = getattr(message, field)
    if thing != made and (exact or _differs(thing, made)):
        raise invalid(
            field,
            "",
            "differs from stored_form; import both as exported, and change stored records with the "
            "RPCs for their kind",
        )


def _differs(given: Message, made: Message) -> bool:
    """Whether a given field differs from what this version would export."""
    return any(value != getattr(made, field.name) for field, value in given.ListFields())


def _vectors(
    message: pb.ExportRecord, kind: ExportedCollection, path: str, reading: Reading
) -> dict[str, Vector]:
    if not reading.dimensions:
        return {}
    spec = kind.source.spec(reading.dimensions)
    return {
        name: _vector(given, spec, name, f"{path}.vectors[{name!r}]")
        for name, given in message.vectors.items()
    }


def _vector(message: pb.ExportedVector, spec: CollectionSpec, name: str, path: str) -> Vector:
    values: Sequence[float] = list(message.values)
    if not all(map(math.isfinite, values)):
        raise invalid(path, "vector.finite", "must have only finite numbers")
    if name in spec.sparse:
        indices = list(message.indices)
        if len(indices) == len(values) == len(set(indices)):
            return SparseVector(indices, values)
    elif name in spec.multi:
        count, size = max(1, message.vector_count), spec.multi[name]
        if len(values) == count * size:
            return MultiVector([values[n * size : (n + 1) * size] for n in range(count)])
    elif len(values) == spec.dense.get(name) and not message.indices:
        return values
    raise invalid(
        path,
        "vector.shape",
        f"is not a vector of {spec.name}: wrong name, dimensions or number of values",
    )
