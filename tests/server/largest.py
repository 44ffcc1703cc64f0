"""The largest things that the contract allows, made from its own rules."""

from __future__ import annotations

from typing import Any

from lot_grpc.pb.buf.validate import validate_pb2

VALIDATE: Any = validate_pb2

KIB = 1024
ACTIONS, STEPS = "lot.v1.Pattern.actions", "lot.v1.ErrorSolution.steps"
MESSAGE = "lot.v1.ErrorSolution.error_message"
"""Bounds that are no annotations: 1.5 MiB of a list together, 64 KiB of a text."""

_SKIPPED = {"supersedes", "parent_pattern_id", "task_type_pattern", "ttl", "project"}


def _rules(field: Any) -> Any:
    options = field.GetOptions()
    if options.HasExtension(VALIDATE.field):
        return options.Extensions[VALIDATE.field]
    return VALIDATE.FieldRules()


def _text(rules: Any, n: int) -> str:
    start = f"x{n}"
    if rules.pattern:
        return start + "a" * int((128 if "127" in rules.pattern else 60) - len(start))
    # Dots are no words: a word of 1 MiB takes seconds to read.
    return f"{start} " + "." * int(rules.max_bytes - len(start) - 1)


def _fill(message: Any, name: str, n: int) -> None:
    """``n`` makes texts differ; those of the last field of an id are told from each other."""
    field = message.DESCRIPTOR.fields_by_name[name]
    rules, of, target = _rules(field), field.message_type, getattr(message, name)
    if of is not None and of.GetOptions().map_entry:
        for m in range(rules.map.max_pairs):
            value = 1.5 if of.fields_by_name["value"].type == 1 else "v" * 256
            target[f"k{m}" + "k" * 40] = value
    elif field.full_name == ACTIONS:
        for _ in range(5):
            action = target.add(tool="t" * KIB, note="n" * 16 * KIB)
            action.args["arg"] = "a" * 256_000
        target.add(tool="t" * KIB, note="n" * KIB).args["arg"] = "a" * 190_000
    elif field.full_name == STEPS:
        target.extend(f"{m}" + "s" * (16 * KIB - 3) for m in range(95))
    elif field.is_repeated and of is not None:
        for m in range(rules.repeated.max_items):
            fill(target.add(), m)
    elif field.is_repeated:
        target.extend(
            _text(rules.repeated.items.string, m) for m in range(rules.repeated.max_items)
        )
    elif of is None and field.type == field.TYPE_STRING:
        longest = 64 * KIB if field.full_name == MESSAGE else 0
        setattr(
            message, name, f"x{n} " + "." * (longest - 9) if longest else _text(rules.string, n)
        )
    elif of is None and field.type == field.TYPE_DOUBLE:
        setattr(message, name, 0.75)
    elif of is not None and of.full_name == "google.protobuf.Struct":
        target["key"] = "x" * 262_000
    elif of is not None and of.full_name == "google.protobuf.Value":
        target.string_value = "x" * 262_000
    elif of is not None and not of.full_name.startswith("google."):
        fill(target, n)


def fill(message: Any, n: int) -> None:
    """Set every field that a caller may set to what is largest."""
    for field in message.DESCRIPTOR.fields:
        rules = _rules(field)
        if field.name not in _SKIPPED and (
            field.message_type is not None
            or field.type == field.TYPE_DOUBLE
            or rules.string.max_bytes
            or rules.repeated.max_items
            or field.full_name == MESSAGE
        ):
            _fill(message, field.name, n)


def largest(kind: Any, n: int = 0, /, **fields: Any) -> Any:
    """The largest message of a type; ``fields`` are set to these, empty ones cleared."""
    message = kind()
    fill(message, n)
    for name, value in fields.items():
        message.ClearField(name)
        if value is not None:
            setattr(message, name, value)
    return message
