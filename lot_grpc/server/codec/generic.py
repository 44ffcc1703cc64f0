"""Dataclasses ⇄ messages with the same fields, by descriptors and type hints.

An ``Encoder`` turns a dataclass into messages, a ``Decoder`` messages into a dataclass. Both work
out the mapping once, when the module that creates them is imported, and raise TypeError there if
the two sides do not agree: if one has a field that the other lacks and ``omit`` does not name, or
if types differ. So no field that is added to the contract or to a dataclass is forgotten.

=====================  =========================================================================
Field                  Attribute
=====================  =========================================================================
string, bool, number   ``str``, ``bytes``, ``bool``, ``int``, ``float``; with presence ``… | None``
enum                   enum with members of the same names; UNSPECIFIED is None
Timestamp              ``int``, microseconds since 1970
Duration               ``float``, seconds, or ``int``, microseconds
Struct                 ``Mapping[str, Any]``; if empty the field is absent
other message          dataclass, by the same rules
repeated, map          ``tuple[T, ...]``, ``Mapping[str, T]``
member of a oneof      union of dataclasses, each named like its field (``Project``: ``project``)
=====================  =========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from operator import attrgetter
from types import MappingProxyType, NoneType
from typing import Any, Final, Generic, TypeAlias, TypeVar, get_args

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from lot_grpc.server.codec.pairs import (
    DURATION,
    STRUCT,
    TIME,
    Pair,
    class_in,
    hint_of,
    hints_of,
    is_map,
    message_class,
    oneof_of,
    zero_of,
)
from lot_grpc.server.codec.values import (
    EnumCodec,
    duration_to_pb,
    micros_of_duration,
    micros_of_time,
    micros_to_duration,
    seconds_of_duration,
    struct_from_json,
    struct_from_pb,
    time_to_pb,
)

T = TypeVar("T")
M = TypeVar("M", bound=Message)

_Convert: TypeAlias = Callable[[Any], Any]
_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Whole:
    """The value of a field that is computed from the whole dataclass."""

    compute: Callable[[Any], Any]


class Encoder(Generic[T, M]):
    """Turns a dataclass into messages of one type."""

    def __init__(
        self,
        source: type[T],
        message: type[M],
        *,
        flatten: Sequence[str] = (),
        rename: Mapping[str, str] = _EMPTY,
        values: Mapping[str, _Convert | Whole] = _EMPTY,
        omit: Collection[str] = (),
    ) -> None:
        """Keys of mappings are fields of the message.

        Args:
            source: a dataclass; its properties can be encoded too.
            message: the type of the messages.
            flatten: attributes, unless None, whose own attributes go into the same message.
            rename: attributes named differently from their field, also as ``outer.inner``.
            values: functions of the attribute's value, unless that is None. An Encoder makes each
                item of a repeated field, and a ``Whole`` gets the dataclass itself.
            omit: fields that stay unset, and attributes without a field.

        Raises:
            TypeError: the two do not agree.
        """
        pair = Pair(source, message, omit, {*rename, *values})
        paths = {name: name for name in hints_of(source) if name not in flatten}
        for outer in flatten:
            inner = hints_of(class_in(hint_of(source, outer)))
            paths = {name: f"{outer}.{name}" for name in inner} | paths
        paths |= rename
        code = _Code(source, message, flatten)
        for field in pair.fields():
            path, convert = paths.get(field.name), values.get(field.name)
            if isinstance(convert, Whole):
                pair.use(field.name)
                code.compute(field.name, convert.compute)
            elif path is not None:
                pair.use(path)
                if convert is None:
                    convert = _encoding(pair, field, hint_of(source, path))
                elif isinstance(convert, Encoder) and field.is_repeated:
                    convert = _each(convert)
                code.copy(field.name, path, convert)
            elif path := paths.get(oneof_of(field)):
                pair.use(path)
                kind = pair.member(field, hint_of(source, path))
                convert = convert or Encoder(kind, message_class(field)).encode
                code.compute(field.name, _if_is(kind, attrgetter(path), convert))
            else:
                raise pair.error(f"field {field.name} has no attribute")
        pair.check_used(source, flatten)
        self.encode: Callable[[T], M] = code.compiled()

    def __call__(self, thing: T) -> M:
        """The message."""
        return self.encode(thing)


class _Code:
    """A generated function that calls a message's constructor, like handwritten code.

    It is assembled as text, as in ``dataclasses``, since it is in the path of every response: a
    loop over the fields takes 1.3 times as long (measured).
    """

    def __init__(self, source: type, message: type[Message], flatten: Sequence[str]) -> None:
        self._source = source
        self._flatten = flatten
        self._known: dict[str, Any] = {"message": message}
        self._arguments: list[str] = []

    def copy(self, name: str, path: str, convert: _Convert | None) -> None:
        """Set a field to the value of an attribute, converted unless it is None."""
        outer = path.split(".")[0]
        value = f"of_{path}" if outer in self._flatten else f"thing.{path}"
        if convert is not None:
            self._known[f"convert_{name}"] = convert
            optional = NoneType in get_args(hint_of(self._source, path))
            value = (
                f"None if (value := {value}) is None else convert_{name}(value)"
                if optional
                else f"convert_{name}({value})"
            )
        if outer in self._flatten and NoneType in get_args(hint_of(self._source, outer)):
            value = f"None if of_{outer} is None else ({value})"
        self._arguments.append(f"{name}={value}")

    def compute(self, name: str, compute: _Convert) -> None:
        """Set a field to a value computed from the whole dataclass."""
        self._known[f"compute_{name}"] = compute
        self._arguments.append(f"{name}=compute_{name}(thing)")

    def compiled(self) -> _Convert:
        """The compiled function."""
        parts = [f"of_{outer} = thing.{outer}" for outer in self._flatten]
        lines = ["def encode(thing):", *parts, f"return message({', '.join(self._arguments)})"]
        exec("\n    ".join(lines), self._known)  # noqa: S102 - names of attributes and fields only
        encode: _Convert = self._known["encode"]
        return encode


class Decoder(Generic[M, T]):
    """Turns messages of one type into a dataclass. Absent fields get the attribute's default."""

    def __init__(
        self,
        message: type[M],
        target: type[T],
        *,
        path: str = "",
        rename: Mapping[str, str] = _EMPTY,
        values: Mapping[str, _Convert] = _EMPTY,
        defaults: Mapping[str, Any] = _EMPTY,
        omit: Collection[str] = (),
    ) -> None:
        """Keys of ``rename`` and ``values`` are fields of the message, of ``defaults`` attributes.

        Args:
            message: the type of the messages.
            target: a dataclass.
            path: the message's path in a request, for errors.
            rename: attributes named differently from their field.
            values: functions of the field's value. A Decoder gets the field's path as well, and
                makes each item of a repeated field.
            defaults: in place of the dataclass's own.
            omit: fields that are not read, and attributes that are passed to the call or not set.

        Raises:
            TypeError: the two do not agree.
        """
        pair = Pair(target, message, omit, {*rename, *values})
        hints = hints_of(target)
        own = {one.name: one for one in fields(target)}  # type: ignore[arg-type]
        self._path, self._target = path, target
        self._absent: dict[str, Any] = dict(defaults)
        self._reads: dict[Any, tuple[str, Any, bool]] = {}
        for field in pair.fields():
            name = rename.get(field.name, field.name)
            convert: _Convert | _Located | None = values.get(field.name)
            if name in own:
                hint = hints[name]
                if convert is None:
                    pair.check_absence(field, own[name].default)
                    convert = _reading(pair, field, hint)
                if own[name].default is own[name].default_factory is MISSING:
                    self._absent.setdefault(name, zero_of(field, hint))
            elif (name := oneof_of(field)) in own:
                kind = pair.member(field, hints[name])
                convert = convert or Decoder(message_class(field), kind)
            else:
                raise pair.error(f"field {field.name} has no attribute")
            if isinstance(convert, Decoder):
                convert = _Located(field, convert)
            pair.use(name)
            self._reads[field] = name, convert, isinstance(convert, _Located)
        pair.check_used(target)
        self._absent = {name: one for name, one in self._absent.items() if one is not MISSING}

    def __call__(self, message: M, path: str | None = None, **given: Any) -> T:
        """The dataclass, with attributes as ``given``. Raises RequestInvalidError."""
        where = self._path if path is None else path
        made = {**self._absent, **given}
        for field, value in message.ListFields():
            known = self._reads.get(field)
            if known is None:
                continue
            name, convert, located = known
            if convert is None:
                made[name] = value
            else:
                made[name] = convert(value, where) if located else convert(value)
        return self._target(**made)


# --- one field ------------------------------------------------------------------------------------


def _encoding(pair: Pair, field: FieldDescriptor, hint: Any) -> _Convert | None:
    """The converter to the value of a field; None: it is the attribute's value."""
    if not field.is_repeated:
        return _encoding_of_one(pair, field, pair.present(field, hint))
    inner = pair.items(field, hint)
    one = _encoding_of_one(pair, *inner)
    if one is None:
        return None
    if is_map(field):
        return lambda values: {key: one(value) for key, value in values.items()}
    return _each(one)


def _encoding_of_one(pair: Pair, field: FieldDescriptor, kind: Any) -> _Convert | None:
    of = pair.checked(field, kind)
    if field.enum_type is not None:
        return EnumCodec(field.enum_type, kind).numbers.__getitem__
    if field.message_type is None:
        return None
    if of == TIME:
        return time_to_pb
    if of == DURATION:
        return duration_to_pb if kind is float else micros_to_duration
    if of == STRUCT:
        return lambda values: struct_from_json(values) if values else None
    return Encoder(kind, message_class(field)).encode


def _reading(pair: Pair, field: FieldDescriptor, hint: Any) -> _Convert | _Located | None:
    """The converter to the value of an attribute; None: it is the field's value."""
    if not field.is_repeated:
        return _reading_of_one(pair, field, pair.present(field, hint))
    inner, kind = pair.items(field, hint)
    if is_map(field):
        if _encoding_of_one(pair, inner, kind) is not None:
            raise pair.error(f"cannot read the map {field.name}")
        return dict
    if inner.enum_type is not None:
        return EnumCodec(inner.enum_type, kind).all_from_pb
    if pair.checked(inner, kind):
        return _Located(field, Decoder(message_class(inner), kind))
    return tuple


def _reading_of_one(pair: Pair, field: FieldDescriptor, kind: Any) -> _Convert | _Located | None:
    of = pair.checked(field, kind)
    if field.enum_type is not None:
        return EnumCodec(field.enum_type, kind).members.get
    if field.message_type is None:
        return None
    if of == TIME:
        return _Located(field, micros_of_time)
    if of == DURATION:
        return _Located(field, seconds_of_duration if kind is float else micros_of_duration)
    if of == STRUCT:
        return _Located(field, struct_from_pb)
    return _Located(field, Decoder(message_class(field), kind))


class _Located:
    """Reads a value that may be refused, and therefore needs its path."""

    def __init__(self, field: FieldDescriptor, read: Callable[[Any, str], Any]) -> None:
        self._name, self._each = field.name, field.is_repeated
        self._read = read

    def __call__(self, value: Any, path: str) -> Any:
        where = f"{path}.{self._name}" if path else self._name
        if self._each:
            return tuple(self._read(one, f"{where}[{n}]") for n, one in enumerate(value))
        return self._read(value, where)


def _each(convert: _Convert) -> _Convert:
    return lambda values: [convert(value) for value in values]


def _if_is(kind: type, get: _Convert, encode: _Convert) -> _Convert:
    def encoded(thing: Any) -> Any:
        value = get(thing)
        return encode(value) if isinstance(value, kind) else None

    return encoded
