"""Java."""

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
    children_of,
    note_tag,
)
from lot_grpc.parsing.shapes import logical, note_addition, note_return

_CONCURRENT = frozenset(
    {
        "CompletableFuture",
        "CompletionStage",
        "ExecutorService",
        "Executors",
        "Future",
        "ScheduledExecutorService",
        "StructuredTaskScope",
        "Thread",
    }
)


def _method(place: Place) -> Definition:
    modifiers = children_of(place.node, "modifiers")
    annotated = any(
        place.text(place.field("name", child)) == "Async"
        for one in modifiers
        for child in one.named_children
    )
    name = place.text(place.field("name"))
    constructor = place.node.type != "method_declaration"
    parameters = _parameters(place)
    surely = not constructor and not _overloaded(place, name)
    several = bool(children_of(place.field("parameters"), "spread_parameter"))
    return Definition(
        CodeForm.METHOD,
        "constructor" if constructor else "method",
        name,
        place.node,
        place.field("body"),
        parameters,
        receivers=frozenset({"this"}) if surely else frozenset(),
        recursive_by_name=surely,
        arity=None if several else len(parameters),
        tags=("async",) if annotated else (),
    )


def _overloaded(place: Place, name: str) -> bool:
    """Whether another method of the class has the same name and number of parameters."""
    above = place.above()
    count = len(_parameters(place))
    same = 0
    for other in children_of(above, "method_declaration"):
        if place.text(place.field("name", other)) == name:
            same += _parameter_count(place.field("parameters", other)) == count
    return same > 1


def _parameter_count(node: Node | None) -> int:
    return sum(
        child.type in {"formal_parameter", "spread_parameter"}
        for child in (node.named_children if node is not None else [])
    )


def _type(word: str) -> Define:
    def define(place: Place) -> Definition:
        return Definition(
            CodeForm.CLASS,
            word,
            place.text(place.field("name")),
            place.node,
            place.field("body"),
            _parameters(place) if word == "record" else (),
            tags=(word,) if word != "class" else (),
        )

    return define


def _nameless(place: Place) -> Definition | None:
    """An anonymous class: a scope, so that its methods do not count as the outer class's."""
    if not children_of(place.node, "class_body"):
        return None
    return Definition(None, "class", place.text(place.field("type")), place.node, None)


def _parameters(place: Place) -> tuple[str, ...]:
    node = place.field("parameters")
    names = []
    for child in node.named_children if node is not None else []:
        if child.type == "formal_parameter":
            names.append(place.text(place.field("name", child)))
        elif child.type == "spread_parameter":
            declared = children_of(child, "variable_declarator")
            names.append(place.text(place.field("name", declared[0])) if declared else "")
    return tuple(names)


def _try(place: Place) -> Handler | None:
    clauses = children_of(place.node, "catch_clause")
    if not clauses:
        return None
    caught: dict[str, None] = {}
    for clause in clauses:
        for parameter in children_of(clause, "catch_formal_parameter"):
            for kinds in children_of(parameter, "catch_type"):
                caught |= dict.fromkeys(place.text(kind) for kind in kinds.named_children)
    return Handler(tuple(caught))


def _call(place: Place) -> Called | None:
    arguments = place.field("arguments")
    receiver = place.text(place.field("object"))
    if receiver in _CONCURRENT:
        place.traits.tags.add("async")
    return Called(
        receiver,
        place.text(place.field("name")),
        arguments.named_child_count if arguments is not None else 0,
    )


def _type_name(place: Place) -> None:
    if place.text(place.node) in _CONCURRENT:
        place.traits.tags.add("async")


def _case(place: Place) -> None:
    """Count a label, except ``default``."""
    if place.node.named_child_count:
        place.traits.complexity += 1


RULES = Rules(
    joint=".",
    comments=frozenset({"line_comment", "block_comment"}),
    definitions={
        "method_declaration": _method,
        "constructor_declaration": _method,
        "compact_constructor_declaration": _method,
        "object_creation_expression": _nameless,
        "class_declaration": _type("class"),
        "interface_declaration": _type("interface"),
        "enum_declaration": _type("enum"),
        "record_declaration": _type("record"),
    },
    handlers={"try_statement": _try, "try_with_resources_statement": _try},
    loops=frozenset({"for_statement", "enhanced_for_statement", "while_statement", "do_statement"}),
    decisions=frozenset({"if_statement", "catch_clause", "ternary_expression"}),
    watch={
        "binary_expression": logical("&&", "||"),
        "switch_label": _case,
        "type_identifier": _type_name,
        "throw_statement": note_tag("raises"),
        "assignment_expression": note_addition,
        "return_statement": note_return,
    },
    calls={"method_invocation": _call},
)
