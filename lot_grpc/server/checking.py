"""From the bytes of a request to a message that the contract allows.

gRPC passes on raw bytes (``request_deserializer=None``), since core answers a request that it
cannot parse with INTERNAL and no reason.
"""

from __future__ import annotations

import re
from typing import Any, Final

import protovalidate
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from lot_grpc.domain.errors import (
    RequestInvalidError,
    RequestMalformedError,
    Violation,
    invalid,
)
from lot_grpc.server.counting import ItemCounter
from lot_grpc.server.rule_texts import enum_of, rule_text
from lot_grpc.server.status import MAX_VIOLATIONS
from lot_grpc.server.structural_checks import WellFormed, subscript
from lot_grpc.server.views import Views

_VALIDATOR: Final = protovalidate.Validator()
_VIEW_VALIDATOR: Final = protovalidate.Validator()
"""For views. A validator knows types by name: a single one would confuse a view with its type."""
_VIEWS: Final = Views()

_MANY_ITEMS: Final = 10_000
"""Requests with more items are checked only up to the first violation, to save time."""

_RULE: Final = re.compile(r"(?<=^error evaluating )[^\s:]+")
"""The rule named in the validator's message."""

_OF_NAMES: Final = ("string.pattern", ".characters")
"""How the rules on the characters of ids and names end."""

_CAUSES: Final = (
    ("UTF-8", "a string is not valid UTF-8"),
    ("MaxDepth", "it is nested too deeply"),
    ("corrupt", "it is truncated or is a different message"),
)
"""Words in the parser's error texts, and what they mean to a caller."""


class Checker:
    """Parses and checks requests of one type. ``checker_of`` caches one per type."""

    def __init__(self, request_type: type[Message]) -> None:
        self._type = request_type
        self._descriptor: Any = request_type.DESCRIPTOR
        self._counting = ItemCounter(request_type)
        self._structural = WellFormed(request_type)
        viewed = _VIEWS.needed(request_type)
        self._view = _VIEWS.of(request_type) if viewed else request_type
        self._validator = _VIEW_VALIDATOR if viewed else _VALIDATOR

    def __call__(self, raw: bytes) -> Message:
        """The message in ``raw``.

        Raises:
            RequestMalformedError: the bytes are not such a message.
            RequestInvalidError: with every violation; only the first if a list is over its limit or
                the request has more than 10,000 items.
            LimitExceededError: it is too large to check.
        """
        try:
            items = self._counting(raw)
            message = self._type.FromString(raw)
        except DecodeError as error:
            raise self._malformed(error) from None  # a caller's mistake needs no traceback
        found = self._structural.check(message, raw)
        seen = message if self._view is self._type else self._view.FromString(raw)
        try:
            broken = self._validator.collect_violations(seen, fail_fast=items > _MANY_ITEMS)
        except protovalidate.EvaluationError as error:
            rule = _RULE.search(str(error))
            raise invalid(
                "",
                rule[0] if rule else "",
                f"the request is too complex to validate ({error}); send fewer items",
            ) from None
        if found or broken:
            known = {violation.field for violation in found}
            violations = [_violation(one, self._descriptor) for one in broken[:MAX_VIOLATIONS]]
            more = len(broken) - len(violations)
            found += [violation for violation in violations if violation.field not in known]
            raise RequestInvalidError(found, more)
        return message

    def names(self, message: Message) -> list[Violation]:
        """What is wrong with the ids and names in a message that the server made itself.

        Its other fields may exceed what a request may send.
        """
        seen = message
        if self._view is not self._type:
            seen = self._view.FromString(message.SerializeToString())
        broken = self._validator.collect_violations(seen)
        found = [_violation(one, self._descriptor) for one in broken]
        return [one for one in found if one.rule.endswith(_OF_NAMES)]

    def _malformed(self, error: DecodeError) -> RequestMalformedError:
        name, text = self._type.DESCRIPTOR.full_name, str(error)
        cause = next((cause for word, cause in _CAUSES if word in text), "it cannot be parsed")
        return RequestMalformedError(f"the request is not a valid {name}: {cause}", type=name)


def checker_of(request_type: type[Message]) -> Checker:
    """The checker of a type, compiled on first use, which takes about 1 ms."""
    if (checker := _CHECKERS.get(request_type)) is None:
        checker = _CHECKERS[request_type] = Checker(request_type)
    return checker


_CHECKERS: Final[dict[type[Message], Checker]] = {}


def _violation(violation: protovalidate.Violation, request: Descriptor) -> Violation:
    """A violation with the field path as in the proto, the rule's id, and what to do about it."""
    found = violation.proto
    path = ""
    elements = found.field.elements if found.field is not None else ()
    for element in elements:
        path += f".{element.field_name}"
        if element.subscript is not None:
            key = element.subscript.value
            numbered = element.subscript.field == "index"
            path += f"[{key}]" if numbered else subscript(key)
    enum = enum_of(request, [element.field_name for element in elements])
    words = rule_text(found.rule_id, violation.rule_value, violation.field_value, enum)
    description = words or found.message or f"violates rule {found.rule_id}"
    # A rule on a message of the request names the field in its text: `pattern.task must …`.
    named, _, rest = description.partition(" ")
    if elements and named.startswith(f"{elements[-1].field_name}."):
        path += named.removeprefix(elements[-1].field_name)
        description = rest
    return Violation(
        path.removeprefix("."),
        found.rule_id,
        f"key {description}" if found.for_key else description,
    )
