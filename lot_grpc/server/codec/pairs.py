"""Checks that a dataclass and a message agree in their fields and the fields' types."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, Final, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

TIME: Final = "google.protobuf.Timestamp"
DURATION: Final = "google.protobuf.Duration"
STRUCT: Final = "google.protobuf.Struct"

_SCALARS: Final[Mapping[int, type]] = {
    FieldDescriptor.CPPTYPE_STRING: str,
    FieldDescriptor.CPPTYPE_BOOL: bool,
    FieldDescriptor.CPPTYPE_INT32: int,
    FieldDescriptor.CPPTYPE_INT64: int,
    FieldDescriptor.CPPTYPE_DOUBLE: float,
    FieldDescriptor.CPPTYPE_FLOAT: float,
}


class Pair:
    """A dataclass and a message that are compared."""

    def __init__(
        self, kind: type, message: type[Message], omit: Collection[str], named: Collection[str]
    ) -> None:
        self._kind, self._message, self._omit = kind, message, set(omit)
        self._used: set[str] = set()
        if missing := set(named) - set(message.DESCRIPTOR.fields_by_name):
            raise self.error(f"no field {', '.join(sorted(missing))}")

    def error(self, why: str) -> TypeError:
        """The error to raise if the two do not agree."""
        return TypeError(f"{self._kind.__name__} and {self._message.__name__}: {why}")

    def fields(self) -> Iterator[FieldDescriptor]:
        """The fields of the message that are not omitted."""
        of: Any = self._message.DESCRIPTOR
        return (one for one in of.fields if one.name not in self._omit)

    def use(self, *paths: str) -> None:
        """Mark attributes as having a field."""
        self._used.update(paths, (path.split(".")[0] for path in paths))

    def check_used(self, kind: type, flatten: Sequence[str] = ()) -> None:
        """Raise TypeError if an attribute has no field, or an omitted name exists nowhere."""
        names = {one.name for one in fields(kind)} - {*flatten}
        for outer in flatten:
            inner = class_in(hint_of(kind, outer))
            names |= {one.name for one in fields(inner)}
            self._used |= {path.removeprefix(f"{outer}.") for path in self._used}
        if rest := names - self._used - self._omit:
            raise self.error(f"attribute {', '.join(sorted(rest))} has no field")
        if wrong := self._omit - names - set(self._message.DESCRIPTOR.fields_by_name):
            raise self.error(f"neither has {', '.join(sorted(wrong))}")

    def checked(self, field: FieldDescriptor, kind: Any) -> str:
        """The name of the field's message type, "" without one. Raises TypeError (the types)."""
        of = field.message_type.full_name if field.message_type is not None else ""
        if field.enum_type is not None:
            fits = isinstance(kind, type) and issubclass(kind, Enum)
        elif of == TIME:
            fits = kind is int
        elif of == DURATION:
            fits = kind in (int, float)
        elif of == STRUCT:
            fits = get_origin(kind) is Mapping
        elif of:
            fits = hasattr(kind, "__dataclass_fields__")
        elif field.type == FieldDescriptor.TYPE_BYTES:
            fits = kind is bytes
        else:
            fits = kind is _SCALARS[field.cpp_type]
        if not fits:
            raise self.error(f"{field.name} cannot be {kind}")
        return of

    def present(self, field: FieldDescriptor, hint: Any) -> Any:
        """The type of a value that is not None. Raises TypeError: the field has no presence."""
        kinds = get_args(hint)
        if NoneType not in kinds:
            return hint
        if not field.has_presence and field.enum_type is None:
            raise self.error(f"{field.name} cannot say None")
        [kind] = set(kinds) - {NoneType}
        return kind

    def items(self, field: FieldDescriptor, hint: Any) -> tuple[FieldDescriptor, Any]:
        """The descriptor of the items of a list or the values of a map, and their type."""
        of, kinds = get_origin(hint), get_args(hint)
        if is_map(field) and of in (Mapping, dict):
            of_map: Any = field.message_type
            return of_map.fields_by_name["value"], kinds[1]
        if not is_map(field) and of in (tuple, list, Sequence):
            return field, kinds[0]
        raise self.error(f"{field.name} cannot be {hint}")

    def member(self, field: FieldDescriptor, hint: Any) -> type:
        """The class in a union for a field of a oneof: the one with the same name."""
        for kind in get_args(hint):
            if kind.__name__.lower() == field.name.replace("_", ""):
                return kind  # type: ignore[no-any-return]
        raise self.error(f"nothing in {hint} is named like {field.name}")

    def check_absence(self, field: FieldDescriptor, default: Any) -> None:
        """Raise TypeError if False could not be distinguished from a field that is not given."""
        if default is True and not field.has_presence:
            raise self.error(f"{field.name} would never be False")


def is_map(field: FieldDescriptor) -> bool:
    """Whether it is a map, which is a repeated field too."""
    of = field.message_type
    return of is not None and of.GetOptions().map_entry


def oneof_of(field: FieldDescriptor) -> str:
    """The name of the oneof to which the field belongs, "" without one."""
    return field.containing_oneof.name if field.containing_oneof is not None else ""


def message_class(field: FieldDescriptor) -> type[Message]:
    """The type of its messages."""
    of: Any = field.message_type
    return GetMessageClass(of)


def zero_of(field: FieldDescriptor, hint: Any) -> Any:
    """The value of an attribute without a default if its field is absent; MISSING: none."""
    if NoneType in get_args(hint):
        return None
    if field.is_repeated:
        return MISSING if is_map(field) else ()
    known = field.message_type is None and field.enum_type is None
    return field.default_value if known else MISSING


def hints_of(kind: Any) -> Mapping[str, Any]:
    """The types of the attributes of a dataclass, and of its properties."""
    return _hints_of(kind)


@cache  # each kind is read about ten times, which took 60 ms of a start
def _hints_of(kind: Any) -> Mapping[str, Any]:
    found = {
        name: get_type_hints(one.fget)["return"]
        for base in kind.__mro__
        for name, one in vars(base).items()
        if isinstance(one, property)
    }
    return found | get_type_hints(kind)


def hint_of(kind: Any, path: str) -> Any:
    """The type of an attribute, also as ``outer.inner``."""
    for name in path.split("."):
        kind = hints_of(class_in(kind))[name]
    return kind


def class_in(hint: Any) -> type:
    """The class of a type that may be optional or generic."""
    [kind] = set(get_args(hint)) - {NoneType} if NoneType in get_args(hint) else {hint}
    of: type = get_origin(kind) or kind
    return of


def fields_beside(message: type[Message], kind: Any) -> set[str]:
    """The fields of a message without an attribute: for a content, the output-only ones."""
    return set(message.DESCRIPTOR.fields_by_name) - {one.name for one in fields(kind)}
