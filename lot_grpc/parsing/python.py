"""Python."""

from __future__ import annotations

from tree_sitter import Node

from lot_grpc.domain.code_shapes import CodeForm
from lot_grpc.parsing.rules import (
    Called,
    Definition,
    Handler,
    Place,
    Rules,
    children_of,
    count_one,
    first,
    names_in,
    note_tag,
)
from lot_grpc.parsing.shapes import note_addition, note_halving, note_return

_NAMES = frozenset({"identifier", "attribute"})


def _function(place: Place) -> Definition:
    node = place.node
    body = place.field("body")
    method = place.in_class
    named = _parameters(place.field("parameters"), place)
    static = any(
        place.text(decorator).lstrip("@ ") == "staticmethod" for decorator in _decorators(place)
    )
    bound = method and not static and bool(named)
    is_async = any(child.type == "async" for child in node.children[:1])
    return Definition(
        CodeForm.METHOD if method else CodeForm.FUNCTION,
        "method" if method else "function",
        place.text(place.field("name")),
        _outer(place),
        body,
        named[1:] if bound else named,
        receivers=frozenset({"self", "cls", *named[:1]} if bound else {"self", "cls"})
        if method
        else frozenset(),
        recursive_by_name=not method,
        tags=("async",) if is_async else (),
        doc=_docstring(body, place),
    )


def _class(place: Place) -> Definition:
    body = place.field("body")
    return Definition(
        CodeForm.CLASS,
        "class",
        place.text(place.field("name")),
        _outer(place),
        body,
        doc=_docstring(body, place),
    )


def _lambda(place: Place) -> Definition | None:
    """A lambda that is assigned to a name."""
    assignment, statement = place.above(), place.above(2)
    if assignment is None or assignment.type != "assignment" or statement is None:
        return None
    name = place.field("left", assignment)
    if name is None or name.type != "identifier":
        return None
    return Definition(
        CodeForm.FUNCTION,
        "lambda",
        place.text(name),
        statement if statement.type == "expression_statement" else assignment,
        place.field("body"),
        _parameters(place.field("parameters"), place),
    )


def _decorators(place: Place) -> list[Node]:
    above = place.above()
    if above is None or above.type != "decorated_definition":
        return []
    return children_of(above, "decorator")


def _outer(place: Place) -> Node:
    above = place.above()
    return above if above is not None and above.type == "decorated_definition" else place.node


def _docstring(body: Node | None, place: Place) -> str:
    statement = first(body)
    if statement is None or statement.type != "expression_statement":
        return ""
    string = first(statement)
    if string is None or string.type != "string":
        return ""
    content = children_of(string, "string_content")
    if not content:
        return ""
    return place.source[content[0].start_byte : content[-1].end_byte].decode(errors="ignore")


def _parameters(node: Node | None, place: Place) -> tuple[str, ...]:
    if node is None:
        return ()
    names = []
    for child in node.named_children:
        if child.type in {"comment", "keyword_separator", "positional_separator"}:
            continue
        name = place.field("name", child) or (child if child.type == "identifier" else None)
        names.append(place.text(name or first(child)))
    return tuple(names)


def _try(place: Place) -> Handler | None:
    clauses = children_of(place.node, "except_clause") + children_of(
        place.node, "except_group_clause"
    )
    if not clauses:  # it cleans up but handles nothing
        return None
    caught: dict[str, None] = {}
    for clause in clauses:
        what = first(clause)
        if what is not None and what.type == "as_pattern":
            what = first(what)
        if what is not None and what.type in {*_NAMES, "tuple"}:
            caught |= dict.fromkeys(names_in(what, place, _NAMES))
    return Handler(tuple(caught))


def _call(place: Place) -> Called | None:
    function, arguments = place.field("function"), place.field("arguments")
    if function is None:
        return None
    count = arguments.named_child_count if arguments is not None else 0
    if function.type == "identifier":
        return Called("", place.text(function), count)
    if function.type != "attribute":
        return None
    receiver = place.text(place.field("object", function))
    if receiver == "asyncio":
        place.traits.tags.add("async")
    return Called(receiver, place.text(place.field("attribute", function)), count)


def _case(place: Place) -> None:
    """Count a case, except the wildcard ``_``."""
    pattern = first(place.node)
    if pattern is None or place.text(pattern) != "_" or place.field("guard") is not None:
        place.traits.complexity += 1


RULES = Rules(
    joint=".",
    comments=frozenset({"comment"}),
    definitions={
        "function_definition": _function,
        "class_definition": _class,
        "lambda": _lambda,
    },
    handlers={"try_statement": _try},
    loops=frozenset({"for_statement", "while_statement"}),
    decisions=frozenset(
        {
            "if_statement",
            "elif_clause",
            "except_clause",
            "except_group_clause",
            "conditional_expression",
            "for_in_clause",
        }
    ),
    watch={
        "boolean_operator": count_one,
        "binary_operator": lambda place: note_halving(
            place, operator.type if (operator := place.field("operator")) else ""
        ),
        "case_clause": _case,
        "if_clause": count_one,
        "await": note_tag("async", "await"),
        "yield": note_tag("generator"),
        "raise_statement": note_tag("raises"),
        "augmented_assignment": note_addition,
        "return_statement": note_return,
    },
    calls={"call": _call},
)
