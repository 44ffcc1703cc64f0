"""Counts the items of a request on its raw bytes, before it is parsed.

A list of ten million empty messages takes 20 MB on the wire, gigabytes once parsed, and minutes to
validate. So lists and maps are counted first, and counting stops at the first that is over its
limit. The request as a whole has a limit too, since lists can be nested. Only fields that can hold
a list are inspected, so an ordinary request costs microseconds.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from lot_grpc.domain.errors import LimitExceededError, RequestInvalidError, Violation
from lot_grpc.pb.buf.validate import validate_pb2
from lot_grpc.server.rule_texts import rule_text
from lot_grpc.server.structural_checks import Path, render

MAX_ITEMS: Final = 50_000
"""Items in all lists and maps of a request, except packed numbers and Structs: 500 patterns with
100 each."""

MAX_FIELDS: Final = 1_000_000
"""Fields on the wire, including those in Structs: about 250,000 JSON values."""

_MAX_PLAIN: Final = 1_000
"""Limit for lists without a rule in the contract: the paths of a field mask."""

_MAX_DEPTH: Final = 100
"""protobuf's own limit on nested messages."""

_RULES: Any = vars(validate_pb2)["field"]
_CONTINUED: Final = bytes(range(0x80, 0x100))
_WIDTH: Final = {
    FieldDescriptor.TYPE_BOOL: 1,
    FieldDescriptor.TYPE_DOUBLE: 8,
    FieldDescriptor.TYPE_FIXED64: 8,
    FieldDescriptor.TYPE_SFIXED64: 8,
    FieldDescriptor.TYPE_FIXED32: 4,
    FieldDescriptor.TYPE_FLOAT: 4,
    FieldDescriptor.TYPE_SFIXED32: 4,
}
"""Bytes of a packed number; the others are varints."""


class _Step(NamedTuple):
    """A field that is counted or descended into.

    ``bound``: maximum number of items, 0 if it is not a list; ``width``: bytes of a packed item, 0
    for a varint, None if not packed; ``inside``: the fields to inspect in a message.
    """

    name: str
    bound: int
    rule: str
    width: int | None
    inside: _Steps | None


_Steps: TypeAlias = "dict[int, _Step]"
"""By field number. Types may be recursive."""


class ItemCounter:
    """The count for one request type. Made once, at registration."""

    def __init__(self, request_type: Any) -> None:
        self._steps = _Planner(structs=False).steps(request_type.DESCRIPTOR)
        self._with_structs = _Planner(structs=True).steps(request_type.DESCRIPTOR)

    def __call__(self, raw: bytes) -> int:
        """The total number of items.

        Raises:
            DecodeError: the bytes are not a message.
            RequestInvalidError: a list or map is over its limit.
            LimitExceededError: there are too many items or fields in total.
        """
        count = _Count(raw)
        # A field takes at least two bytes.
        steps = self._with_structs if len(raw) > 2 * MAX_FIELDS else self._steps
        try:
            count.message(0, len(raw), steps, None, 0)
        except IndexError:
            raise DecodeError("corrupt") from None
        return MAX_ITEMS - count.items


class _Count:
    """One count over one request."""

    __slots__ = ("_raw", "fields", "items")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.items = MAX_ITEMS
        self.fields = MAX_FIELDS
        """How many more are allowed."""

    def message(self, at: int, end: int, steps: _Steps, path: Path, depth: int) -> None:
        """Count the fields between two offsets. IndexError: the bytes end too early."""
        raw = self._raw
        counts: dict[str, int] = {}
        fields = self.fields
        if depth > _MAX_DEPTH:
            raise DecodeError("MaxDepth")
        while at < end:
            fields -= 1
            if fields < 0:
                raise _too_many("fields and values", MAX_FIELDS)
            tag = raw[at]
            at += 1
            if tag >= 0x80:
                tag, at = _varint(raw, at - 1)
            start = at
            match tag & 7:
                case 2:
                    size = raw[at]
                    start = at + 1
                    if size >= 0x80:
                        size, start = _varint(raw, at)
                    at = start + size
                case 0:
                    at = at + 1 if raw[at] < 0x80 else _varint(raw, at)[1]
                case 1:
                    at += 8
                case 5:
                    at += 4
                case _:
                    raise DecodeError("corrupt")
            if at > end:
                raise DecodeError("corrupt")
            step = steps.get(tag >> 3)
            if step is None:
                continue
            where: Path = (path, step.name)
            if step.bound:
                index = counts.get(step.name, 0)
                counts[step.name] = index + self._add(step, tag, start, at)
                if counts[step.name] > step.bound:
                    text = rule_text(step.rule, step.bound, None, None)
                    raise RequestInvalidError([Violation(render(where), step.rule, text)])
                where = (where, index)
            if step.inside is not None and tag & 7 == 2:
                self.fields = fields
                self.message(start, at, step.inside, where, depth + 1)
                fields = self.fields
        self.fields = fields

    def _add(self, step: _Step, tag: int, start: int, end: int) -> int:
        """How many items a field adds."""
        if step.width is not None and tag & 7 == 2:
            if step.width:
                return (end - start) // step.width
            return len(self._raw[start:end].translate(None, _CONTINUED))
        self.items -= 1
        if self.items < 0:
            raise _too_many("items in its lists and maps", MAX_ITEMS)
        return 1


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise DecodeError("corrupt")


def _too_many(what: str, most: int) -> LimitExceededError:
    return LimitExceededError(
        f"the request has more than {most:,} {what}; split it",
        limit=most,
        given=f"more than {most}",
    )


# --- plans, made once for each type -----------------------------------------------------------

_JSON: Final = {
    f"google.protobuf.{name}" for name in ("Struct", "Struct.FieldsEntry", "Value", "ListValue")
}
_RECORD: Final = "lot.v1.ExportRecord"
"""Its contents are compared with what the server would export, so no rule limits its lists."""


class _Planner:
    """Makes the steps of a type and of what it contains."""

    def __init__(self, *, structs: bool) -> None:
        self._structs = structs
        self._made: dict[tuple[str, bool], _Steps] = {}

    def steps(self, descriptor: Descriptor, *, ruled: bool = True) -> _Steps:
        """The steps of a type, registered before its fields are visited: types may recur."""
        ruled = ruled and descriptor.full_name != _RECORD
        key = descriptor.full_name, ruled
        if key not in self._made:
            self._made[key] = steps = {}
            listed = descriptor.full_name not in _JSON
            for field in descriptor.fields:
                step = self._step(field, ruled=ruled, listed=listed and field.is_repeated)
                if step.bound or step.inside is not None:
                    steps[field.number] = step
        return self._made[key]

    def _step(self, field: FieldDescriptor, *, ruled: bool, listed: bool) -> _Step:
        kind = field.message_type
        inside = None
        if kind is not None and self._counts(kind, set()):
            inside = self.steps(kind, ruled=ruled)
        if not listed:
            return _Step(field.name, 0, "", None, inside)
        rule, bound = _rule(field)
        width = _WIDTH.get(field.type, 0) if field.is_packed else None
        return _Step(field.name, bound if ruled else MAX_FIELDS, rule, width, inside)

    def _counts(self, descriptor: Descriptor, seen: set[str]) -> bool:
        """Whether a type can hold items."""
        name = descriptor.full_name
        if name in _JSON:
            return self._structs
        if name in seen:
            return False
        seen.add(name)
        return any(
            field.is_repeated
            or (field.message_type is not None and self._counts(field.message_type, seen))
            for field in descriptor.fields
        )


def _rule(field: FieldDescriptor) -> tuple[str, int]:
    """The rule that bounds a list or map, and its bound."""
    rules = field.GetOptions().Extensions[_RULES]
    if rules.map.max_pairs:
        return "map.max_pairs", rules.map.max_pairs
    return "repeated.max_items", rules.repeated.max_items or _MAX_PLAIN
