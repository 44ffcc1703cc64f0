"""Rules for JavaScript and TypeScript, including JSX and TSX."""

from __future__ import annotations

from tree_sitter import Node

from lot_grpc.domain.code_shapes import CodeForm
from lot_grpc.parsing.rules import (
    Called,
    Define,
    Definition,
    Handler,
    Place,
    Rules,
    first,
    note_tag,
)
from lot_grpc.parsing.shapes import logical, note_addition, note_return

_LITERALS = frozenset({"arrow_function", "function_expression", "generator_function"})
_FIELDS = frozenset({"field_definition", "public_field_definition"})


def _named(place: Place) -> Definition:
    """A function declaration."""
    return _definition(place, place.text(place.field("name")), _outer(place, 1))


def _method(place: Place) -> Definition:
    name = place.text(place.field("name"))
    return _definition(place, name, place.node, method=place.in_class)


def _literal(place: Place) -> Definition | None:
    """A function without a name of its own that is assigned to a name."""
    above = place.above()
    if above is None:
        return None
    if above.type == "variable_declarator":
        return _definition(place, place.text(place.field("name", above)), _outer(place, 1))
    if above.type in _FIELDS:
        name = place.field("property", above) or place.field("name", above)
        return _definition(place, place.text(name), above, method=True)
    if above.type == "pair":
        return _definition(place, place.text(place.field("key", above)), above)
    if above.type == "assignment_expression":
        return _definition(place, place.text(place.field("left", above)), _outer(place, 1))
    if above.type == "export_statement":
        return _definition(place, "default", above)
    return None


def _definition(place: Place, name: str, outer: Node, *, method: bool = False) -> Definition:
    is_async = any(child.type == "async" for child in place.node.children[:4])
    star = "generator" in place.node.type or any(
        child.type == "*" for child in place.node.children[:4]
    )
    return Definition(
        CodeForm.METHOD if method else CodeForm.FUNCTION,
        "method" if method else "function",
        name,
        outer,
        place.field("body"),
        _parameters(place),
        receivers=frozenset({"this"}) if method else frozenset(),
        recursive_by_name=not method,
        called="" if method else place.text(place.field("name")),
        tags=(*(("async",) if is_async else ()), *(("generator",) if star else ())),
    )


def _outer(place: Place, steps: int) -> Node:
    """The node to extract, including a ``const`` that declares nothing else, and an ``export``."""
    outer = place.node
    while (above := place.above(steps)) is not None:
        declares_one = (
            above.type in {"lexical_declaration", "variable_declaration"}
            and above.named_child_count == 1
        )
        if not declares_one and above.type not in {
            "variable_declarator",
            "assignment_expression",
            "expression_statement",
            "export_statement",
        }:
            break
        outer = above
        steps += 1
    return outer


def _class(word: str) -> Define:
    def define(place: Place) -> Definition | None:
        name = place.field("name")
        above = place.above()
        if name is None and above is not None and above.type == "variable_declarator":
            name = place.field("name", above)
        if name is None and (above is None or above.type != "export_statement"):
            return None
        return Definition(
            CodeForm.CLASS,
            word,
            place.text(name) or "default",
            _outer(place, 1),
            place.field("body"),
            tags=(word,) if word != "class" else (),
        )

    return define


def _scope(place: Place) -> Definition:
    return Definition(None, "namespace", place.text(place.field("name")), place.node, None)


def _object(place: Place) -> Definition | None:
    """An object assigned to a variable, which gives its functions their scope."""
    above = place.above()
    if above is None or above.type != "variable_declarator":
        return None
    return Definition(None, "object", place.text(place.field("name", above)), place.node, None)


def _declared(place: Place) -> Definition | None:
    """A method without a body. In a class it only declares one that has a body (overloads)."""
    above = place.above()
    if above is not None and above.type == "class_body" and "abstract" not in place.node.type:
        return None
    return _definition(place, place.text(place.field("name")), place.node, method=True)


def _parameters(place: Place) -> tuple[str, ...]:
    one = place.field("parameter")
    if one is not None:
        return (place.text(one),)
    node = place.field("parameters")
    names = []
    for child in node.named_children if node is not None else []:
        if child.type == "comment":
            continue
        inner: Node | None = place.field("pattern", child) or place.field("left", child) or child
        if inner is not None and inner.type in {"rest_pattern", "assignment_pattern"}:
            inner = first(inner)
        names.append(place.text(inner))
    return tuple(name for name in names if name != "this")


def _try(place: Place) -> Handler | None:
    clause = place.field("handler")
    if clause is None:
        return None
    error = place.text(place.field("parameter", clause))
    caught: dict[str, None] = {}
    waiting = [clause]
    looked = 0
    while waiting and looked < 1000:
        node = waiting.pop()
        looked += 1
        operator = place.field("operator", node) if node.type == "binary_expression" else None
        if (
            operator is not None
            and operator.type == "instanceof"
            and place.text(place.field("left", node)) == error
        ):
            caught[place.text(place.field("right", node))] = None
        waiting.extend(reversed(node.named_children))
    return Handler(tuple(caught))


def _call(place: Place) -> Called | None:
    function, arguments = place.field("function"), place.field("arguments")
    if function is None:
        return None
    count = arguments.named_child_count if arguments is not None else 0
    if function.type == "identifier":
        return Called("", place.text(function), count)
    if function.type != "member_expression":
        return None
    receiver, name = place.field("object", function), place.field("property", function)
    called = Called(place.text(receiver), place.text(name), count)
    if called.receiver == "Promise" or called.name == "then":
        place.traits.tags |= {"async", "promise"}
    if called.name == "catch" and receiver is not None and receiver.type == "call_expression":
        place.traits.tags |= {"async", "promise", "error_handling"}
    return called


def _new(place: Place) -> None:
    if place.text(place.field("constructor")) == "Promise":
        place.traits.tags |= {"async", "promise"}


RULES = Rules(
    joint=".",
    comments=frozenset({"comment"}),
    leading=frozenset({"decorator"}),
    definitions={
        "function_declaration": _named,
        "generator_function_declaration": _named,
        "method_definition": _method,
        "method_signature": _declared,
        "abstract_method_signature": _declared,
        **dict.fromkeys(_LITERALS, _literal),
        "class_declaration": _class("class"),
        "abstract_class_declaration": _class("class"),
        "class": _class("class"),
        "interface_declaration": _class("interface"),
        "internal_module": _scope,
        "object": _object,
    },
    handlers={"try_statement": _try},
    loops=frozenset({"for_statement", "for_in_statement", "while_statement", "do_statement"}),
    decisions=frozenset({"if_statement", "switch_case", "catch_clause", "ternary_expression"}),
    watch={
        "binary_expression": logical("&&", "||", "??"),
        "await_expression": note_tag("async", "await"),
        "yield_expression": note_tag("generator"),
        "throw_statement": note_tag("raises"),
        "new_expression": _new,
        "augmented_assignment_expression": note_addition,
        "return_statement": note_return,
    },
    calls={"call_expression": _call},
    statements=frozenset({"expression_statement", "lexical_declaration"}),
)
