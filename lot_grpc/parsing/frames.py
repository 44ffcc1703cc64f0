"""The open definitions of a walk, and questions about them."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from lot_grpc.domain.code_shapes import CodeForm
from lot_grpc.parsing.found import Found
from lot_grpc.parsing.rules import Called, Definition, NodeTraits, Rules

_MOST_LOOKED_AT = 20


@dataclass(slots=True)
class Frame:
    """An open definition. ``found`` is its piece, None for scopes and other definitions."""

    depth: int
    traits: NodeTraits
    form: CodeForm | None
    scope: tuple[str, ...]
    found: Found | None = None
    definition: Definition | None = None
    part: CodeForm | None = None


@dataclass(slots=True)
class Owned:
    """The methods of a type that are written outside its declaration."""

    names: dict[str, None]
    count: int = 0
    highest: int = 1


def is_sole(node: Node, definition: Definition | None, rules: Rules) -> bool:
    """Whether this node is a definition's whole body, except for comments and a docstring."""
    body = definition.body if definition is not None else None
    if body is None or body.named_child_count > _MOST_LOOKED_AT:
        return False
    statements = [one for one in body.named_children if one.type not in rules.comments]
    if definition is not None and definition.doc:
        statements = statements[1:]
    while len(statements) == 1 and statements[0].type in rules.blocks:
        statements = statements[0].named_children
    return len(statements) == 1 and statements[0] == node


def calls_itself(frame: Frame, called: Called) -> bool:
    """Whether a call in a definition is certainly to that definition."""
    definition = frame.definition
    if definition is None or called.name != (definition.called or definition.name):
        return False
    if definition.arity not in {None, called.argument_count}:
        return False
    if not called.receiver:
        return definition.recursive_by_name and called.name not in definition.parameters
    own = called.receiver in definition.receivers or called.receiver in frame.scope[-2:-1]
    return own and definition.form is CodeForm.METHOD
