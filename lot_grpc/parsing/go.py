"""Go."""

from __future__ import annotations

import re

from tree_sitter import Node

from lot_grpc.domain.code_shapes import CodeForm
from lot_grpc.parsing.rules import (
    Called,
    Definition,
    Handler,
    Place,
    Rules,
    children_of,
    first,
    note_tag,
)
from lot_grpc.parsing.shapes import logical, note_addition, note_return

_ERROR_NAME = re.compile(r"(?:.*\.)?(?:err|\w*Err|\w*[eE]rror)\d*")
_ERROR_TESTS = frozenset({"errors.Is", "errors.As"})


def _function(place: Place) -> Definition:
    return Definition(
        CodeForm.FUNCTION,
        "function",
        place.text(place.field("name")),
        place.node,
        place.field("body"),
        _parameters(place),
        tags=_tags(place),
    )


def _method(place: Place) -> Definition:
    receiver = place.field("receiver")
    named = children_of(receiver, "parameter_declaration")
    kind = place.field("type", named[0]) if named else None
    while kind is not None and kind.type in {"pointer_type", "parenthesized_type", "generic_type"}:
        kind = first(kind)
    variable = place.text(place.field("name", named[0])) if named else ""
    return Definition(
        CodeForm.METHOD,
        "method",
        place.text(place.field("name")),
        place.node,
        place.field("body"),
        _parameters(place),
        owner=place.text(kind),
        receivers=frozenset({variable} - {""}),
        recursive_by_name=False,
        tags=_tags(place),
    )


def _literal(place: Place) -> Definition | None:
    """A function literal that is assigned to a name."""
    values, holder = place.above(), place.above(2)
    if values is None or values.type != "expression_list" or values.named_child_count != 1:
        return None
    if holder is None or holder.type not in {"var_spec", "short_var_declaration"}:
        return None
    name = place.field("name", holder) or place.field("left", holder)
    declaration = place.above(3)
    alone = (
        declaration is not None
        and declaration.type == "var_declaration"
        and declaration.named_child_count == 1
    )
    return Definition(
        CodeForm.FUNCTION,
        "function",
        place.text(name),
        declaration if alone and declaration is not None else holder,
        place.field("body"),
        _parameters(place),
        tags=_tags(place),
    )


def _type(place: Place) -> Definition | None:
    kind = place.field("type")
    words = {"struct_type": "struct", "interface_type": "interface"}
    if kind is None or kind.type not in words:
        return None
    above = place.above()
    alone = above is not None and above.type == "type_declaration" and above.named_child_count == 1
    word = words[kind.type]
    return Definition(
        CodeForm.CLASS,
        word,
        place.text(place.field("name")),
        above if alone and above is not None else place.node,
        next((child for child in kind.children if child.type != word), None),
        tags=(word,),
    )


def _declared(place: Place) -> Definition:
    """A method that an interface requires."""
    name = place.text(place.field("name"))
    return Definition(CodeForm.METHOD, "method", name, place.node, None)


def _parameters(place: Place) -> tuple[str, ...]:
    node = place.field("parameters")
    return tuple(
        place.text(name)
        for child in (node.named_children if node is not None else [])
        for name in child.children_by_field_name("name")
    )


def _tags(place: Place) -> tuple[str, ...]:
    """Channels among the parameters."""
    node = place.field("parameters")
    for child in node.named_children if node is not None else []:
        kind = place.field("type", child)
        if kind is not None and kind.type == "channel_type":
            return ("async", "channel")
    return ()


def _if(place: Place) -> Handler | None:
    """``if err != nil``, alone or as part of the condition, and ``errors.Is`` or ``As``."""
    caught: dict[str, None] = {}
    found = False
    waiting = [place.field("condition")]
    while waiting:
        node = waiting.pop()
        if node is None:
            continue
        if node.type == "binary_expression":
            operator = place.field("operator", node)
            left, right = place.field("left", node), place.field("right", node)
            if operator is not None and operator.type in {"&&", "||"}:
                waiting += [right, left]
            elif operator is not None and operator.type in {"!=", "=="}:
                about_error = bool(_ERROR_NAME.fullmatch(place.text(left)))
                to = place.text(right)
                if about_error and operator.type == "!=" and to == "nil":
                    found = True
                elif about_error and to != "nil" and operator.type == "==":
                    found = True
                    caught[to] = None
        elif node.type in {"unary_expression", "parenthesized_expression"}:
            waiting.append(first(node))
        elif place.text(place.field("function", node)) in _ERROR_TESTS:
            found = True
            arguments = place.field("arguments", node)
            given = arguments.named_children if arguments is not None else []
            caught |= dict.fromkeys(place.text(what).lstrip("&") for what in given[1:2])
    if not found:
        return None
    return Handler(tuple(caught), propagates=not caught and _only_returns(place))


def _only_returns(place: Place) -> bool:
    """Whether the error is returned unchanged: one return, no call in it, no else."""
    body = place.field("consequence")
    if place.field("alternative") is not None or body is None:
        return False
    statements = body.named_children
    if len(statements) == 1 and statements[0].type == "statement_list":
        statements = statements[0].named_children
    if len(statements) != 1 or statements[0].type != "return_statement":
        return False
    waiting: list[Node] = [statements[0]]
    while waiting:
        node = waiting.pop()
        if node.type in {"call_expression", "composite_literal"}:
            return False
        waiting += node.named_children
    return True


def _call(place: Place) -> Called | None:
    function, arguments = place.field("function"), place.field("arguments")
    if function is None:
        return None
    count = arguments.named_child_count if arguments is not None else 0
    if function.type == "identifier":
        name = place.text(function)
        if name == "recover":
            place.traits.tags.add("error_handling")
        if name == "panic":
            place.traits.tags.add("raises")
        return Called("", name, count)
    if function.type != "selector_expression":
        return None
    receiver = place.text(place.field("operand", function))
    return Called(receiver, place.text(place.field("field", function)), count)


def _unary(place: Place) -> None:
    operator = place.field("operator")
    if operator is not None and operator.type == "<-":
        place.traits.tags |= {"async", "channel"}


RULES = Rules(
    joint=".",
    comments=frozenset({"comment"}),
    definitions={
        "function_declaration": _function,
        "method_declaration": _method,
        "func_literal": _literal,
        "type_spec": _type,
        "method_elem": _declared,
    },
    handlers={"if_statement": _if},
    loops=frozenset({"for_statement"}),
    decisions=frozenset({"if_statement", "expression_case", "type_case", "communication_case"}),
    watch={
        "binary_expression": logical("&&", "||"),
        "go_statement": note_tag("async", "goroutine"),
        "select_statement": note_tag("async", "select"),
        "send_statement": note_tag("async", "channel"),
        "unary_expression": _unary,
        "channel_type": note_tag("async", "channel"),
        "assignment_statement": note_addition,
        "return_statement": note_return,
    },
    calls={"call_expression": _call},
    blocks=frozenset({"statement_list"}),
)
