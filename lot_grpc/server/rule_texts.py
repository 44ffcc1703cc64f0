"""Texts for violated rules where the validator's own are of little help.

It shows enums as numbers and ids as a regular expression; a caller needs names and words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import Descriptor, EnumDescriptor

from lot_grpc.domain.counting import counted


class Form(NamedTuple):
    """The form of a text in words; ``optional``: it may be empty."""

    words: str
    optional: bool = False


_ID: Final = "a letter or digit, then up to 127 letters, digits, `.`, `_`, `:` or `-`"

PATTERNS: Final[Mapping[str, Form]] = {
    "^([A-Za-z0-9][A-Za-z0-9._:-]{0,127})?$": Form(_ID, optional=True),
    "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$": Form(_ID),
    "^[a-z][a-z0-9_-]{0,63}$": Form(
        "a lower-case letter, then up to 63 lower-case letters, digits, `_` or `-`"
    ),
}
"""Every regular expression of the contract in words; a test checks them."""


def rule_text(rule_id: str, rule: Any, value: Any, enum: EnumDescriptor | None) -> str:
    """The rule in words; empty if the validator's text is good enough.

    Args:
        rule_id: The validator's name of the rule, such as ``string.min_len``.
        rule: The rule's value in the contract, such as the 1 of ``min_len``.
        value: The value that was given.
        enum: The enum to which the value belongs, if any.
    """
    match rule_id:
        case "string.pattern":
            return _pattern_text(rule, value)
        case "string.min_len" | "repeated.min_items" if rule == 1:
            return "must not be empty"
        case "repeated.max_items":
            return f"must have at most {counted(rule, 'item')}"
        case "map.max_pairs":
            return f"must have at most {counted(rule, 'entry')}"
        case "repeated.unique":
            return "must not have duplicate items"
        case "required":
            return "must be set"
        case "enum.defined_only" if enum is not None:
            return f"{value} is not one of {_names(enum, without=[0])}"
        case "enum.not_in" if enum is not None:
            return f"must be one of {_names(enum, without=rule)}"
        case "enum.in" if enum is not None:
            allowed = set(rule)
            others = [one.number for one in enum.values if one.number not in allowed]
            return f"must be one of {_names(enum, without=others)}"
    return ""


def _pattern_text(pattern: str, value: str) -> str:
    form = PATTERNS.get(pattern)
    if form is None:
        return ""
    if form.optional:
        return f"must be empty, or {form.words}"
    return f"must be {form.words}" if value else f"must not be empty; use {form.words}"


def _names(enum: EnumDescriptor, without: Iterable[int]) -> str:
    left_out = set(without)
    return ", ".join(one.name for one in enum.values if one.number not in left_out)


def enum_of(message: Descriptor, path: Sequence[str]) -> EnumDescriptor | None:
    """The enum of the field at a path of names, or of its items; None if it is not an enum."""
    at: Descriptor | None = message
    enum: EnumDescriptor | None = None
    for name in path:
        field = at.fields_by_name.get(name) if at is not None else None
        if field is None:
            return None
        at, enum = field.message_type, field.enum_type
        if at is not None and at.GetOptions().map_entry:
            value = at.fields_by_name["value"]
            at, enum = value.message_type, value.enum_type
    return enum
