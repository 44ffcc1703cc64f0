r"""Checks that no proto rule covers, on every text, number, Struct and instant.

No NUL, no NaN or infinity, Structs at most 16 deep, times that exist; no key of a map, and no text
of a list of unique ones, in two Unicode forms. Every request is checked, so checks must be cheap.
Scans of the raw bytes show within a microsecond or two that most messages cannot be wrong; each
scan is exact in that direction:

* a NUL in a text is a zero byte;
* NaN and infinity have an exponent of ones, which in little-endian ends in ``[f0-ff][7f|ff]`` for a
  double (``[80-ff][7f|ff]`` for a float);
* each nested ``Value`` has a byte ``2a`` (``struct_value``) or ``32`` (``list_value``);
* a text with another Unicode form is not ASCII.

The remaining messages are walked along a plan, made once per type, which names only the fields that
can be wrong.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from lot_grpc.domain.errors import Violation
from lot_grpc.domain.text_form import normal_form
from lot_grpc.pb.buf.validate import validate_pb2

MAX_STRUCT_DEPTH: Final = 16
MAX_FOUND: Final = 1000
"""The walk ends around here: a hostile request must not cost much more than a valid one."""

_RULES: Any = vars(validate_pb2)["field"]
_DOUBLE = re.compile(rb"[\xf0-\xff][\x7f\xff]")
_FLOAT = re.compile(rb"[\x80-\xff][\x7f\xff]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_MIN_SECONDS, _MAX_SECONDS = -62_135_596_800, 253_402_300_799  # years 1 to 9999
_MAX_SPAN = 315_576_000_000  # 10,000 years, protobuf's own limit of a Duration

Path: TypeAlias = "tuple[Path, str | int] | None"
"""The position of a walk: its parent and the label or index of the step. Rendered as text only for
violations."""

_Visit: TypeAlias = "Callable[[_Walk, Any, Path, Plan], None]"


class Plan:
    """Which fields of a type can be wrong, and how each is visited. Types may be recursive."""

    __slots__ = ("many", "messages", "numbers", "texts", "visit")

    def __init__(self, visit: _Visit) -> None:
        self.visit = visit
        """How a message of the type itself is visited."""
        self.texts: list[str] = []
        self.numbers: list[str] = []
        self.messages: list[tuple[str, _Visit, Plan]] = []
        self.many: list[tuple[str, _Visit, Plan]] = []
        """Repeated fields and maps, visited as a whole."""


class WellFormed:
    """The check of one request type. Made once, at registration."""

    def __init__(self, request_type: type[Message]) -> None:
        descriptor: Any = request_type.DESCRIPTOR
        kinds = _kinds(descriptor)
        self._plan = _Planner().plan(descriptor)
        self._pair = _FLOAT if "float" in kinds else _DOUBLE if "double" in kinds else None
        self._structs = "google.protobuf.Value" in kinds
        self._times = bool(kinds & {"google.protobuf.Timestamp", "google.protobuf.Duration"})
        self._unique = "once" in kinds

    def check(self, message: Message, raw: bytes) -> list[Violation]:
        """All violations in ``message``, which was parsed from ``raw``; empty if there are none."""
        nul, forms = b"\0" in raw, self._unique and not raw.isascii()
        if not (nul or forms or self._times or self._maybe_infinite(raw) or self._maybe_deep(raw)):
            return []
        # Doubles are full of zero bytes, so a message with numbers is mostly walked for NUL; then
        # everything is checked along the way, which costs less than two more scans.
        values = nul or self._maybe_infinite(raw) or self._maybe_deep(raw)
        walk = _Walk(nul=nul, values=values, forms=forms)
        walk.message(message, None, self._plan)
        return walk.found[:MAX_FOUND]

    def _maybe_infinite(self, raw: bytes) -> bool:
        if self._pair is None or not (
            b"\x7f" in raw or b"\xff" in raw
        ):  # 20 times as fast as the regex
            return False
        return self._pair.search(raw) is not None

    def _maybe_deep(self, raw: bytes) -> bool:
        return self._structs and raw.count(b"\x2a") + raw.count(b"\x32") >= MAX_STRUCT_DEPTH


class _Walk:
    """One walk over one message."""

    __slots__ = ("forms", "found", "nul", "values")

    def __init__(self, *, nul: bool, values: bool, forms: bool) -> None:
        self.found: list[Violation] = []
        self.nul = nul
        """Texts may be wrong."""
        self.values = values
        """Numbers and Structs may be wrong."""
        self.forms = forms
        """Texts may have another Unicode form."""

    def message(self, message: Any, path: Path, plan: Plan) -> None:
        """Visit the fields that the plan names."""
        if self.nul:
            for name in plan.texts:
                if "\0" in getattr(message, name):
                    self.add_nul((path, name))
        if self.values:
            for name in plan.numbers:
                if not math.isfinite(getattr(message, name)):
                    self.add_infinite((path, name))
        for name, visit, child in plan.messages:
            if message.HasField(name):
                visit(self, getattr(message, name), (path, name), child)
        for name, visit, child in plan.many:
            items = getattr(message, name)
            if items:
                visit(self, items, (path, name), child)

    # --- repeated fields and maps ---------------------------------------------------------------

    def texts(self, texts: Sequence[str], path: Path, _: Plan) -> None:
        if self.nul:
            for index, text in enumerate(texts):
                if "\0" in text:
                    self.add_nul((path, index))

    def numbers(self, numbers: Sequence[float], path: Path, _: Plan) -> None:
        if self.values:
            for index, number in enumerate(numbers):
                if not math.isfinite(number):
                    self.add_infinite((path, index))

    def messages(self, items: Sequence[Any], path: Path, plan: Plan) -> None:
        visit = plan.visit
        for index, item in enumerate(items):
            if len(self.found) >= MAX_FOUND:
                return
            visit(self, item, (path, index), plan)

    def map(self, entries: Mapping[Any, Any], path: Path, plan: Plan) -> None:
        """A map with any keys and values."""
        forms: set[str] = set()
        for key, value in entries.items():
            if self.forms and isinstance(key, str):
                if normal_form(key) in forms:
                    self.add_same_key((path, subscript(key)))
                forms.add(normal_form(key))
            if self.nul and "\0" in f"{key}":
                self.add_nul((path, subscript(key)))
            if isinstance(value, Message):
                plan.visit(self, value, (path, subscript(key)), plan)
            elif isinstance(value, str):
                if "\0" in value:
                    self.add_nul((path, subscript(key)))
            elif isinstance(value, float) and not math.isfinite(value):
                self.add_infinite((path, subscript(key)))

    def unique_texts(self, texts: Sequence[str], path: Path, plan: Plan) -> None:
        """Texts that must differ; the rule in the proto finds equal ones."""
        self.texts(texts, path, plan)
        if self.forms:
            given = set(texts)
            if len({normal_form(text) for text in given}) < len(given):
                self.add(
                    path, "repeated.unique", "must not have the same text in two Unicode forms"
                )

    # --- well-known types -----------------------------------------------------------------------

    def instant(self, instant: Any, path: Path, _: Plan) -> None:
        """A Timestamp."""
        if not (_MIN_SECONDS <= instant.seconds <= _MAX_SECONDS and 0 <= instant.nanos < 10**9):
            self.add(path, "timestamp.range", "must be in the years 1 to 9999, nanos below 1e9")

    def span(self, span: Any, path: Path, _: Plan) -> None:
        """A Duration."""
        seconds, nanos = span.seconds, span.nanos
        if abs(seconds) > _MAX_SPAN or abs(nanos) >= 10**9 or seconds * nanos < 0:
            self.add(path, "duration.range", "must be below 10,000 years, parts of one sign")

    def top_struct(self, struct: Any, path: Path, _: Plan) -> None:
        """A Struct in a field."""
        if self.values:
            self.struct(struct, path, 1)

    def top_value(self, value: Any, path: Path, _: Plan) -> None:
        """A Value in a field."""
        if self.values:
            self.value(value, path, 0)

    def top_list(self, values: Any, path: Path, _: Plan) -> None:
        """A ListValue in a field."""
        if self.values:
            self.list(values, path, 1)

    def struct(self, struct: Any, path: Path, depth: int) -> None:
        """The hot loop of events: testing each member is cheaper than ``WhichOneof``."""
        fields = struct.fields
        for key in fields:
            value = fields[key]
            text = value.string_value
            if text:
                if "\0" in text:
                    self.add_nul((path, member(key)))
            elif number := value.number_value:
                if not math.isfinite(number):
                    self.add_infinite((path, member(key)))
            elif value.WhichOneof("kind") in {"struct_value", "list_value"}:
                self.value(value, (path, member(key)), depth)
            if "\0" in key:
                self.add_nul((path, member(key)))

    def list(self, values: Any, path: Path, depth: int) -> None:
        """Items of a ListValue."""
        for index, value in enumerate(values.values):
            self.value(value, (path, index), depth)

    def value(self, value: Any, path: Path, depth: int) -> None:
        """A value inside ``depth`` Structs and lists."""
        kind = value.WhichOneof("kind")
        if kind == "string_value":
            if "\0" in value.string_value:
                self.add_nul(path)
        elif kind == "number_value":
            if not math.isfinite(value.number_value):
                self.add_infinite(path)
        elif kind in {"struct_value", "list_value"} and len(self.found) < MAX_FOUND:
            if depth >= MAX_STRUCT_DEPTH:
                self.add(
                    path,
                    "struct.depth",
                    f"must not nest more than {MAX_STRUCT_DEPTH} levels deep",
                )
            elif kind == "struct_value":
                self.struct(value.struct_value, path, depth + 1)
            else:
                self.list(value.list_value, path, depth + 1)

    # --- violations -----------------------------------------------------------------------------

    def add(self, path: Path, rule: str, description: str) -> None:
        """Add a violation."""
        self.found.append(Violation(render(path), rule, description))

    def add_nul(self, path: Path) -> None:
        """Add a text with NUL, which neither the store's index nor C programs can handle."""
        self.add(path, "text.nul", "must not contain NUL (U+0000)")

    def add_same_key(self, path: Path) -> None:
        """Add a key that its map also has in another Unicode form."""
        self.add(path, "map.key.form", "must not also be a key of the map in another Unicode form")

    def add_infinite(self, path: Path) -> None:
        """Add a number that JSON cannot represent."""
        self.add(path, "number.finite", "must be a finite number, not NaN or infinity")


def render(path: Path) -> str:
    """A path in the form that violations use."""
    parts: list[str] = []
    while path is not None:
        path, step = path
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            parts.append(step if step.startswith((".", "[")) else f".{step}")
    return "".join(reversed(parts)).removeprefix(".")


def subscript(key: object) -> str:
    """``["key"]`` of a map, escaped as in JSON."""
    if isinstance(key, str):
        return f"[{json.dumps(key[:64], ensure_ascii=False)}]"
    return f"[{str(key).lower()}]"


def member(key: str) -> str:
    """``.key`` of a Struct, or ``["odd key"]``."""
    return f".{key}" if _NAME.fullmatch(key) else subscript(key)


# --- plans, made once for each type -----------------------------------------------------------


_WELL_KNOWN: Mapping[str, _Visit] = {
    "google.protobuf.Struct": _Walk.top_struct,
    "google.protobuf.Value": _Walk.top_value,
    "google.protobuf.ListValue": _Walk.top_list,
    "google.protobuf.Timestamp": _Walk.instant,
    "google.protobuf.Duration": _Walk.span,
}
_NUMBERS = {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}


class _Planner:
    """Makes the plans of a type and of what it contains."""

    def __init__(self) -> None:
        self._plans: dict[str, Plan] = {}

    def plan(self, descriptor: Descriptor) -> Plan:
        """The plan of a type, registered before its fields are visited: types may be recursive."""
        name = descriptor.full_name
        if name not in self._plans:
            self._plans[name] = plan = Plan(_WELL_KNOWN.get(name, _Walk.message))
            if name not in _WELL_KNOWN:
                for each in descriptor.fields:
                    self._add(plan, each)
        return self._plans[name]

    def _add(self, plan: Plan, field: FieldDescriptor) -> None:
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            value = kind.fields_by_name["value"].message_type
            child = self.plan(value) if value is not None else plan
            plan.many.append((field.name, _Walk.map, child))
        elif kind is not None and field.is_repeated:
            plan.many.append((field.name, _Walk.messages, self.plan(kind)))
        elif kind is not None:
            child = self.plan(kind)
            plan.messages.append((field.name, child.visit, child))
        elif field.type == FieldDescriptor.TYPE_STRING and field.is_repeated:
            visit = _Walk.unique_texts if _comes_once(field) else _Walk.texts
            plan.many.append((field.name, visit, plan))
        elif field.type == FieldDescriptor.TYPE_STRING:
            plan.texts.append(field.name)
        elif field.cpp_type in _NUMBERS and field.is_repeated:
            plan.many.append((field.name, _Walk.numbers, plan))
        elif field.cpp_type in _NUMBERS:
            plan.numbers.append(field.name)


def _kinds(descriptor: Descriptor) -> set[str]:
    """Names of message types it can contain; ``double``, ``float``; ``once`` (``_comes_once``)."""
    kinds: set[str] = set()
    todo = [descriptor]
    while todo:
        each = todo.pop()
        if each.full_name not in kinds:
            kinds.add(each.full_name)
            todo += [field.message_type for field in each.fields if field.message_type is not None]
            kinds |= {"double" for f in each.fields if f.type == FieldDescriptor.TYPE_DOUBLE}
            kinds |= {"float" for f in each.fields if f.type == FieldDescriptor.TYPE_FLOAT}
            kinds |= {"once" for f in each.fields if _comes_once(f)}
    return kinds


def _comes_once(field: FieldDescriptor) -> bool:
    """Whether it is a map with text keys, or a list of texts that must differ."""
    kind = field.message_type
    if kind is not None:
        own = kind.GetOptions().map_entry and not kind.full_name.startswith("google.")
        return bool(own and kind.fields_by_name["key"].type == FieldDescriptor.TYPE_STRING)
    unique = field.is_repeated and field.GetOptions().Extensions[_RULES].repeated.unique
    return bool(unique and field.type == FieldDescriptor.TYPE_STRING)
