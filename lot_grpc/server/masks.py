"""Field masks: the paths of a message, what an update sets, and what a read returns.

A path is a field, a oneof, or a field of a singular message field (``project.status``). Structs,
times, durations, maps and lists are set and read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message

from lot_grpc.domain.errors import RequestInvalidError, Violation

Tree: TypeAlias = dict[str, Any]
"""Fields by name, each with the tree of its subfields; empty: the whole field."""


def nested(field: FieldDescriptor) -> bool:
    """Whether paths can go below a field."""
    return (
        field.message_type is not None
        and not field.is_repeated
        and not field.message_type.full_name.startswith("google.")
    )


def paths_of(kind: Descriptor, output_only: Iterable[str] = ()) -> list[str]:
    """All paths of a message type, except ``output_only`` top-level fields and their subfields."""
    oneofs = [one.name for one in kind.oneofs if len(one.fields) > 1]
    return [*(path for path in _paths(kind) if path.split(".")[0] not in output_only), *oneofs]


def _paths(kind: Any, prefix: str = "") -> Iterator[str]:
    for field in kind.fields:
        yield prefix + field.name
        if nested(field):
            yield from _paths(field.message_type, f"{prefix}{field.name}.")


def updated_paths(message: Message, mask: FieldMask, output_only: Iterable[str]) -> set[str]:
    """The paths that an update sets: those of the mask, or the populated ones without a mask.

    ``*`` becomes all top-level fields. Raises RequestInvalidError for paths that cannot be set.
    """
    output_only = frozenset(output_only)
    if not mask.paths:
        return {path for path in _populated(message) if path.split(".")[0] not in output_only}
    kind: Any = message.DESCRIPTOR
    _check(mask, "update_mask", kind, output_only)
    named = set(mask.paths)
    if "*" in named:
        named |= {field.name for field in kind.fields} - output_only
    return named - {"*"}


def _populated(message: Message, prefix: str = "") -> Iterator[str]:
    for field, value in message.ListFields():
        inside = list(_populated(value, f"{prefix}{field.name}.")) if nested(field) else []
        yield from inside or [prefix + field.name]


def read_tree(mask: FieldMask, kind: Descriptor) -> Tree | None:
    """What a read mask keeps of messages of a type; None: all. Raises RequestInvalidError."""
    if not mask.paths:
        return None
    _check(mask, "read_mask", kind, frozenset())
    tree: Tree = {}
    for path in mask.paths:
        first, *rest = path.split(".")
        if path == "*":
            return None
        names = (
            [field.name for field in kind.oneofs_by_name[first].fields]
            if first in kind.oneofs_by_name
            else [first]
        )
        for name in names:
            _add(tree, [name, *rest])
    return tree


def _add(tree: Tree, names: list[str]) -> None:
    *outer, last = names
    for name in outer:
        if tree.get(name) == {}:
            return  # the whole field is kept already
        tree = tree.setdefault(name, {})
    tree[last] = {}


def keep(message: Message, tree: Tree) -> None:
    """Clear whatever a read mask does not name."""
    for field, value in message.ListFields():
        inside = tree.get(field.name)
        if inside is None:
            message.ClearField(field.name)
        elif inside:
            keep(value, inside)


def _check(mask: FieldMask, name: str, kind: Descriptor, output_only: frozenset[str]) -> None:
    valid = paths_of(kind, output_only)
    wrong = [path for path in mask.paths if path != "*" and path not in valid]
    if not wrong:
        return
    faults = [f"{path[:80]!r} is {_fault(path, kind, output_only)}" for path in wrong]
    faults[0] += f"; valid paths of {kind.name}: *, {', '.join(valid)}"
    raise RequestInvalidError([Violation(name, f"{name}.path", fault) for fault in faults])


def _fault(path: str, kind: Descriptor, output_only: frozenset[str]) -> str:
    return "output only" if path.split(".")[0] in output_only else f"not a path of {kind.name}"
