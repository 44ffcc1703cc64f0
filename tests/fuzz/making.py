"""Requests from a seed: good ones, ones at and over the contract's bounds, and bytes that hurt.

Everything is found from the descriptors and the validation rules, so that a new field or RPC is
tried without a word here.
"""

from __future__ import annotations

import functools
import math
import random
import re
import struct
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from lot_grpc.pb.buf.validate import validate_pb2
from tests.parsing.hostile import TOKENS, hostile_code
from tests.server.examples import EXAMPLES, Place, places

_RULES: Any = vars(validate_pb2)["field"]
_MIB = 2**20
NAMESPACES = ("fuzz", "fuzz-2")
_DELETES = re.compile(r"\.(Delete|Clear|Prune)")
_SURROGATE = "\ue000"
"""Becomes half of a pair, which no text holds, in the bytes: UTF-8 of the same length."""
_WORDS = (
    "fix",
    "the",
    "größe",
    "retry",
    "修复",
    "timeout",
    "build",
    "KeyError:",
    "cafe\u0301",
    "🙂",
)
_TEXTS = ("", "\0", "a\0b", _SURROGATE, "cafe\u0301", "\u202eabc", "\ufeff", "\n", " ", "é" * 127,
          "a" * 127, "a" * 128, "a" * 129, "../..", "%s%n{}", "*", ".", "a.b.c", "(" * 300,
          "(a+)+$", "[", "-1", "1e999", "{}", "'; --", "𠮷" * 1000)  # fmt: skip
_WHOLE = (0, 1, -1, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), 2**32 - 1, 2**64 - 1)
_DOUBLES = (0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, 2.0**53 + 2)
_MASKS = ([""], ["*"], ["nothing"], ["a.b.c.d"], ["Title"], ["title", "title"], ["x"] * 1001)


class Maker:
    """Makes messages, and learns from answers which ids and tokens there are."""

    def __init__(self) -> None:
        self._known: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=12))

    def learn(self, message: Message) -> None:
        """Take the ids, etags, cursors and page tokens of a message, by the names of fields."""
        for field, value in message.ListFields():
            if field.message_type is not None:
                if not field.message_type.GetOptions().map_entry:
                    for below in list(value)[:20] if field.is_repeated else [value]:
                        self.learn(below)
            elif field.type == field.TYPE_STRING and (name := _kind_of(field)):
                self._known[name].extend(list(value)[:3] if field.is_repeated else [value])

    def good(self, rng: random.Random, name: str, kind: Any) -> Any:
        """A message that mostly keeps to the rules, often with things that exist."""
        message = kind._concrete_class(**EXAMPLES.get(name, {}))
        if rng.random() < 0.7:
            self._fill(rng, message, rng.choice((0.1, 0.4)), 4)
        if "namespace" in kind.fields_by_name:  # what is deleted in one is there in the other
            here = _DELETES.search(name) is None, rng.random() < 0.9
            message.namespace = NAMESPACES[here[0] != here[1]]
        if "confirm_namespace" in kind.fields_by_name:
            message.confirm_namespace = message.namespace
        if "code" in kind.fields_by_name and rng.random() < 0.5:
            message.language = rng.choice(sorted(TOKENS))
            size = rng.choice((200, 4_000, 40_000))
            message.code = hostile_code(message.language, rng.randrange(10**6), size)
        return message

    def _fill(self, rng: random.Random, message: Any, share: float, depth: int) -> None:
        for field in message.DESCRIPTOR.fields:
            if rng.random() > share:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                value_field = field.message_type.fields_by_name["value"]
                for _ in range(rng.randint(1, 3)):
                    entry = getattr(message, field.name)
                    if value_field.message_type is not None:
                        self._message(rng, entry[_token(rng)], share, depth)
                    else:
                        entry[_token(rng)] = self._scalar(rng, value_field)
            elif field.message_type is not None:
                if depth:
                    to = getattr(message, field.name)
                    for _ in range(rng.randint(1, 3) if field.is_repeated else 1):
                        below = to.add() if field.is_repeated else to
                        below.SetInParent()
                        self._message(rng, below, share, depth - 1)
            elif field.is_repeated:
                items = [self._scalar(rng, field) for _ in range(rng.randint(1, 3))]
                getattr(message, field.name).extend(items)
            else:
                setattr(message, field.name, self._scalar(rng, field))

    def _message(self, rng: random.Random, message: Any, share: float, depth: int) -> None:
        match message.DESCRIPTOR.full_name:
            case "google.protobuf.Timestamp":
                message.seconds = rng.choice((0, 1_700_000_000, 2_000_000_000))
            case "google.protobuf.Duration":
                message.seconds = rng.choice((1, 60, 3600, 86_400))
            case "google.protobuf.Struct":
                json_format.ParseDict({_token(rng): _json(rng, 3) for _ in range(3)}, message)
            case "google.protobuf.Value":
                json_format.ParseDict(_json(rng, 3), message)
            case "google.protobuf.FieldMask":
                message.paths.extend(rng.choice((["title"], ["tags", "metadata"], ["content"])))
            case _:
                self._fill(rng, message, share, depth)

    def _scalar(self, rng: random.Random, field: FieldDescriptor) -> Any:
        rules = field.GetOptions().Extensions[_RULES]
        if field.is_repeated:
            rules = rules.repeated.items
        if field.enum_type is not None:
            return rng.choice(field.enum_type.values).number
        if field.type == field.TYPE_BOOL:
            return rng.random() < 0.5
        if field.type in (field.TYPE_DOUBLE, field.TYPE_FLOAT):
            low = max(rules.double.gte, rules.double.gt)
            high = rules.double.lte or rules.double.lt or 10.0
            return low + rng.random() * (high - low)
        if field.type == field.TYPE_BYTES:
            return rng.randbytes(rng.choice((0, 8, 64)))
        if field.type != field.TYPE_STRING:
            bound = rules.int32 if field.type == field.TYPE_INT32 else rules.int64
            return rng.randint(bound.gte, min(bound.lte or 100, bound.gte + 100))
        known = self._known.get(_kind_of(field), ())
        if known and rng.random() < 0.8:
            return known[int(rng.random() * len(known))]  # as many draws whatever is known
        if rules.string.pattern:
            return _token(rng)
        return _text(rng)[: max(1, (rules.string.max_bytes or 10**6) // 4)]

    # --- what is wrong ---------------------------------------------------------------------------

    def bounds(self, rng: random.Random, name: str, kind: Descriptor) -> bytes:
        """A good message with some fields at or over what they may hold."""
        message = self.good(rng, name, kind)
        every = _places(kind)
        for _ in range(rng.choice((1, 1, 2, 5)) if every else 0):
            place = rng.choice(every)
            place.put(message, _extreme(rng, place))
        raw: bytes = message.SerializeToString()
        raw = raw.replace(_SURROGATE.encode(), b"\xed\xa0\x80")
        if rng.random() < 0.2:  # fields that the contract does not have
            raw += rng.choice(
                (_tag(5000, 0) + b"\x01", _wrap(5000, rng.randbytes(40)), _wrap(1, b"x"))
            )
        return raw

    def hostile(self, rng: random.Random, name: str, kind: Descriptor) -> bytes:
        """Bytes that are no message, or one of a size or depth that nobody needs."""
        good: bytes = self.good(rng, name, kind).SerializeToString()
        match rng.randrange(8):
            case 0:
                return rng.randbytes(rng.choice((1, 30, 1000)))
            case 1:
                return good[: rng.randrange(len(good) + 1)]
            case 2 | 3:
                flipped = bytearray(good or b"\x0a\x01a")
                for _ in range(rng.choice((1, 3, 20))):
                    flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
                return bytes(flipped)
            case 4:
                return good + rng.choice((b"\x0b", b"\xff", b"\x0a\xff\xff\xff\xff\x0f")) * 500
            case 5:
                return good + _deep(rng, kind)
            case _:
                return good + _long(rng, kind)


def _kind_of(field: FieldDescriptor) -> str:
    """What a text names: ``memory_id`` of any message; empty if it names nothing."""
    name = field.name.removeprefix("next_").removesuffix("s")
    return name if name.endswith(("_id", "etag", "page_token", "cursor")) else ""


def _token(rng: random.Random) -> str:
    return rng.choice(("a", "k", "team", "x.y", "Z-9")) + str(rng.randrange(20))


def _text(rng: random.Random) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(rng.choice((1, 3, 10, 300))))


def _json(rng: random.Random, depth: int) -> Any:
    match rng.randrange(7 if depth else 5):
        case 0:
            return None
        case 1:
            return rng.random() < 0.5
        case 2:
            return rng.choice((0, 1.5, -3, 2**53 - 1))
        case 5:
            return [_json(rng, depth - 1) for _ in range(3)]
        case 6:
            return {_token(rng): _json(rng, depth - 1) for _ in range(3)}
        case _:
            return _text(rng)


def _extreme(rng: random.Random, place: Place) -> Any:
    """A value that the field's type has, and its rules perhaps not."""
    field = place.field
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        field = field.message_type.fields_by_name["value"]
    if field.message_type is not None:
        return _extreme_message(rng, field.message_type)
    if field.enum_type is not None:
        return rng.choice((-1, 77, 2**31 - 1, -(2**31), 0))
    if field.type == field.TYPE_BOOL:
        return True
    if field.type in (field.TYPE_DOUBLE, field.TYPE_FLOAT):
        return rng.choice(_DOUBLES)
    if field.type == field.TYPE_BYTES:
        return rng.randbytes(rng.choice((0, 1, 7, 70_000)))
    if field.type == field.TYPE_STRING:
        most = field.GetOptions().Extensions[_RULES].string.max_bytes
        long = ("a" * most, "é" * (most // 2), "b c " * (most // 4) + "over it", "🙂" * (most // 4))
        return rng.choice((*_TEXTS, *long)) if most else rng.choice(_TEXTS)
    bits = 31 if field.type == field.TYPE_INT32 else 63
    low, high = -(2**bits), 2**bits - 1
    if field.type in (field.TYPE_UINT32, field.TYPE_UINT64, field.TYPE_FIXED64):
        low, high = 0, 2 ** (32 if field.type == field.TYPE_UINT32 else 64) - 1
    return min(max(rng.choice(_WHOLE), low), high)


def _extreme_message(rng: random.Random, kind: Any) -> Any:
    message: Any = kind._concrete_class()
    match kind.name:
        case "Timestamp" | "Duration":
            edge = 253_402_300_799 if kind.name == "Timestamp" else 315_576_000_000
            seconds = (0, -1, 1, edge, edge + 1, -62_135_596_801, -edge, 2**63 - 1, -(2**63))
            message.seconds = rng.choice(seconds)
            message.nanos = rng.choice((0, 0, -1, 999_999_999, 10**9, -(2**31), 2**31 - 1))
        case "FieldMask":
            message.paths.extend(rng.choice(_MASKS))
        case "Struct":
            inner: Any = rng.choice((*_TEXTS, 1e308, None))
            for _ in range(rng.choice((0, 14, 15, 16, 17, 30))):
                inner = {"a": inner} if rng.random() < 0.5 else [inner]
            json_format.ParseDict({rng.choice(_TEXTS): inner}, message)
        case "Value":
            match rng.randrange(3):
                case 0:
                    message.number_value = rng.choice(_DOUBLES)
                case 1:
                    message.string_value = rng.choice(_TEXTS)
    return message


# --- bytes ----------------------------------------------------------------------------------------


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _wrap(number: int, inner: bytes) -> bytes:
    return _tag(number, 2) + _varint(len(inner)) + inner


_Path: TypeAlias = tuple[FieldDescriptor, ...]


@functools.cache
def _places(kind: Descriptor) -> Sequence[Place]:
    return list(places(kind))


@functools.cache
def _paths(kind: Descriptor) -> Sequence[_Path]:
    return list(_fields(kind, ()))


def _fields(kind: Descriptor, above: _Path) -> Iterator[_Path]:
    """Each field below a message as the fields that lead to it, types that recur left out."""
    for field in kind.fields:
        yield (*above, field)
        seen = [one.message_type for one in above]
        if field.message_type is not None and len(above) < 5 and field.message_type not in seen:
            yield from _fields(field.message_type, (*above, field))


def _at(path: _Path, inner: bytes) -> bytes:
    """``inner``, as bytes of the message that holds the last field of a path."""
    for field in reversed(path[:-1]):
        inner = _wrap(field.number, inner)
    return inner


def _deep(rng: random.Random, kind: Descriptor) -> bytes:
    """A message in itself, hundreds or thousands of times: Structs, or whatever field is there."""
    every = _paths(kind)
    of_structs = [p for p in every if p[-1].message_type and p[-1].message_type.name == "Struct"]
    if not every:
        return b""
    path = rng.choice(of_structs or every)
    inner = b""
    for _ in range(rng.choice((20, 90, 120, 5000))):
        inner = _wrap(1, _wrap(1, b"k") + _wrap(2, _wrap(5, inner)))
    return _at(path, _wrap(path[-1].number, inner))


def _long(rng: random.Random, kind: Descriptor) -> bytes:
    """A list of very many items, or a text of megabytes."""
    every = _paths(kind)
    lists = [path for path in every if path[-1].is_repeated]
    texts = [p for p in every if p[-1].type in (p[-1].TYPE_STRING, p[-1].TYPE_BYTES)]
    if lists and rng.random() < 0.6:
        path = rng.choice(lists)
        field = path[-1]
        count = rng.choice((1_001, 10_001, 100_000))
        if field.type in (field.TYPE_STRING, field.TYPE_MESSAGE, field.TYPE_BYTES):
            items = _wrap(field.number, rng.choice((b"", b"", b"\x0a\x01a"))) * count
        else:
            items = _wrap(field.number, struct.pack("<d", 0.5) * count)
        return _at(path, items)
    if not texts:
        return b""
    path = rng.choice(texts)
    size = rng.choice((70_000, 300_000, _MIB + 1, 5 * _MIB))
    unit = rng.choice((b"a", b"a b ", b"\xc3\xa9", b"<", b"\xff", b"A<", b'{"a":'))
    return _at(path, _wrap(path[-1].number, unit * (size // len(unit))))
