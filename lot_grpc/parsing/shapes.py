"""Signs of the shape of an algorithm, if the tree proves it."""

from __future__ import annotations

from itertools import islice
from typing import Final

from tree_sitter import Node

from lot_grpc.parsing.rules import Place, Watch, first, names_in

_ITERATIONS: Final = frozenset(
    {"for_statement", "for_in_statement", "enhanced_for_statement", "for_expression"}
)
_FUNCTIONS: Final = frozenset(
    {
        "arrow_function",
        "closure_expression",
        "func_literal",
        "function_expression",
        "lambda",
        "lambda_expression",
    }
)
_HALVES: Final = {"/": "2", "//": "2", ">>": "1", ">>>": "1"}
_PASSING: Final = frozenset(
    {"binary_expression", "binary_operator", "call", "call_expression", "method_invocation"}
)
"""Nodes that a value may pass through before it is assigned to a name."""
_NAMES: Final = frozenset({"identifier"})
_FAR = 12
"""Maximum number of nodes between a return, or a division, and what it belongs to."""


def logical(*operators: str) -> Watch:
    """A watcher that counts binary expressions with short-circuit operators.

    It also notes a division by two.
    """
    deciding = frozenset(operators)

    def watch(place: Place) -> None:
        operator = place.field("operator")
        kind = operator.type if operator is not None else ""
        if kind in deciding:
            place.traits.complexity += 1
        else:
            note_halving(place, kind)

    return watch


def note_halving(place: Place, operator: str) -> None:
    """Note a division by two, or a shift by one, and whether it is the middle of two names."""
    by = _HALVES.get(operator)
    if by is None or place.text(place.field("right")) != by:
        return
    place.traits.halvings += 1
    inner = place.field("left")
    while inner is not None and inner.type in {"parenthesized_expression", "call_expression"}:
        inner = first(place.field("arguments", inner) or inner)  # Go: uint(low+high)
    sign = place.field("operator", inner) if inner is not None else None
    if inner is None or sign is None or sign.type not in {"+", "-"}:
        return
    ends = {place.text(side) for side in _sides(inner) if side.type in _NAMES}
    given = _given_to(place)
    if len(ends) == 2 and given and given not in ends:
        place.traits.midpoints += 1


def _sides(node: Node) -> list[Node]:
    sides = (node.child_by_field_name(name) for name in ("left", "right"))
    return [side for side in sides if side is not None]


def _given_to(place: Place) -> str:
    """The name to which an expression is assigned, empty if there is none."""
    for node in islice(reversed(place.path), _FAR):
        if node.type in _PASSING:
            continue
        for name in ("left", "name", "pattern"):
            target = node.child_by_field_name(name)
            if target is not None and node.end_byte >= place.node.end_byte > target.end_byte:
                return place.text(target)
        if node.type.endswith(("_statement", "block")):
            return ""
    return ""


def note_addition(place: Place) -> None:
    """Note what a loop adds to: ``total += x``, ``total *= x``."""
    operator = place.field("operator")
    if place.traits.loop_depth and operator is not None and operator.type in {"+=", "*=", "|="}:
        place.traits.added.add(place.text(place.field("left")))


def note_return(place: Place) -> None:
    """Note a name that is returned, and whether a loop searched for it."""
    value = first(place.node)
    if value is not None and value.type == "expression_list":
        value = first(value)
    if value is None:
        return
    if value.type == "identifier":
        place.traits.returned.add(place.text(value))
    if place.traits.loop_depth and not place.traits.in_handler and _looked_for(place):
        place.traits.tags.add("search")


def _looked_for(place: Place) -> bool:
    """Whether a loop returns its current item on a condition."""
    decided = False
    for node in islice(reversed(place.path), _FAR):
        if node.type in _ITERATIONS:
            at = set(_names_of_loop(node, place))
            return decided and bool(at & set(names_in(place.node, place, _NAMES)))
        if node.type in _FUNCTIONS:
            return False
        decided = decided or node.type in {"if_statement", "if_expression"}
    return False


def _names_of_loop(loop: Node, place: Place) -> tuple[str, ...]:
    """The names that a loop gives to its current item."""
    head: Node | None = loop
    if loop.child_by_field_name("body") is not None:  # in Go they are one level below
        inner = first(loop)
        head = inner if inner is not None and inner.type.endswith("_clause") else loop
    for name in ("left", "pattern", "name", "initializer", "init"):
        found = head.child_by_field_name(name) if head is not None else None
        if found is not None:
            return names_in(found, place, _NAMES)
    return ()
