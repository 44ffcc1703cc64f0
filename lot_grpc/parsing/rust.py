"""Rust."""

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

_RESULTS = frozenset({"Ok", "Err"})
_SPAWNING = frozenset({"spawn", "spawn_blocking", "spawn_local", "block_on"})
_HANDLING = frozenset({"map_err", "unwrap_or_else", "or_else"})


def _function(place: Place) -> Definition:
    node = place.node
    method = place.in_class
    modifiers = children_of(node, "function_modifiers")
    is_async = any(child.type == "async" for one in modifiers for child in one.children)
    return Definition(
        CodeForm.METHOD if method else CodeForm.FUNCTION,
        "method" if method else "function",
        place.text(place.field("name")),
        node,
        place.field("body"),
        _parameters(place),
        receivers=frozenset({"self", "Self"}) if method else frozenset(),
        recursive_by_name=not method,
        tags=("async",) if is_async else (),
    )


def _type(word: str) -> Define:
    def define(place: Place) -> Definition:
        return Definition(
            CodeForm.CLASS,
            word,
            place.text(place.field("name")),
            place.node,
            place.field("body"),
            tags=(word,),
        )

    return define


def _impl(place: Place) -> Definition:
    name = place.text(_plain(place.field("type")))
    trait = place.text(_plain(place.field("trait")))
    return Definition(
        CodeForm.CLASS,
        "impl",
        name,
        place.node,
        place.field("body"),
        owner=name,
        tags=("impl",),
        title=f"{trait} for {name}" if trait else f"impl {name}",
    )


def _scope(place: Place) -> Definition:
    return Definition(None, "module", place.text(place.field("name")), place.node, None)


def _plain(node: Node | None) -> Node | None:
    """A type without its parameters."""
    while node is not None and node.type == "generic_type":
        node = node.child_by_field_name("type")
    return node


def _parameters(place: Place) -> tuple[str, ...]:
    node = place.field("parameters")
    return tuple(
        place.text(place.field("pattern", child)).removeprefix("mut ")
        for child in children_of(node, "parameter")
    )


def _pattern_names(pattern: Node | None, place: Place) -> tuple[set[str], list[str]]:
    """Which of Ok and Err a pattern names, and the errors that it names inside Err."""
    results: set[str] = set()
    errors: list[str] = []
    waiting = [pattern] if pattern is not None else []
    while waiting:
        node = waiting.pop()
        kind = place.text(place.field("type", node)) if node.type == "tuple_struct_pattern" else ""
        if kind in _RESULTS:
            results.add(kind)
        if kind == "Err":
            errors += [
                path for child in node.named_children[1:] if (path := _error_path(child, place))
            ]
        elif node.type in {"match_pattern", "or_pattern", "tuple_struct_pattern"}:
            waiting += reversed(node.named_children)
    return results, errors


def _error_path(node: Node, place: Place) -> str:
    """``io::Error`` of ``Err(io::Error { .. })``; empty for a plain name."""
    if node.type in {"tuple_struct_pattern", "struct_pattern"}:
        return place.text(place.field("type", node))
    return place.text(node) if node.type == "scoped_identifier" else ""


def _match(place: Place) -> Handler | None:
    arms = children_of(place.field("body"), "match_arm")
    place.traits.complexity += max(0, len(arms) - 1)
    results: set[str] = set()
    caught: dict[str, None] = {}
    for arm in arms:
        pattern = place.field("pattern", arm)
        if pattern is not None and place.field("condition", pattern) is not None:
            place.traits.complexity += 1
        named, errors = _pattern_names(pattern, place)
        results |= named
        caught |= dict.fromkeys(errors)
    return Handler(tuple(caught)) if "Err" in results else None


def _if(place: Place) -> Handler | None:
    condition = place.field("condition")
    if condition is None or condition.type != "let_condition":
        return None
    results, errors = _pattern_names(place.field("pattern", condition), place)
    return Handler(tuple(errors)) if "Err" in results else None


def _try(place: Place) -> None:
    """``?``: returns on an error."""
    place.traits.complexity += 1
    place.traits.tags |= {"error_handling", "error_propagation"}


def _let(place: Place) -> None:
    """``let … else``."""
    if place.field("alternative") is not None:
        place.traits.complexity += 1
        if "Ok" in _pattern_names(place.field("pattern"), place)[0]:
            place.traits.tags.add("error_handling")


def _chain(place: Place) -> None:
    """``if let … && …``."""
    place.traits.complexity += sum(child.type == "&&" for child in place.node.children)


def _call(place: Place) -> Called | None:
    function, arguments = place.field("function"), place.field("arguments")
    while function is not None and function.type == "generic_function":
        function = place.field("function", function)
    if function is None:
        return None
    count = arguments.named_child_count if arguments is not None else 0
    if function.type == "identifier":
        return Called("", place.text(function), count)
    if function.type == "scoped_identifier":
        path, name = place.text(place.field("path", function)), place.field("name", function)
        if path.split("::")[0] == "tokio" or place.text(name) in _SPAWNING:
            place.traits.tags |= {"async", "spawn"}
        return Called(path, place.text(name), count)
    if function.type != "field_expression":
        return None
    name = place.field("field", function)
    if place.text(name) in _HANDLING:
        place.traits.tags.add("error_handling")
    return Called(place.text(place.field("value", function)), place.text(name), count)


def _macro(place: Place) -> None:
    name = place.text(place.field("macro"))
    if name in {"tokio::select", "select", "join", "tokio::join", "tokio::try_join"}:
        place.traits.tags.add("async")
    if name in {"panic", "bail", "unreachable"}:
        place.traits.tags.add("raises")


RULES = Rules(
    joint="::",
    comments=frozenset({"line_comment", "block_comment"}),
    leading=frozenset({"attribute_item"}),
    definitions={
        "function_item": _function,
        "function_signature_item": _function,
        "struct_item": _type("struct"),
        "enum_item": _type("enum"),
        "trait_item": _type("trait"),
        "impl_item": _impl,
        "mod_item": _scope,
    },
    handlers={"match_expression": _match, "if_expression": _if},
    loops=frozenset({"for_expression", "while_expression", "loop_expression"}),
    decisions=frozenset({"if_expression"}),
    watch={
        "binary_expression": logical("&&", "||"),
        "let_chain": _chain,
        "let_declaration": _let,
        "try_expression": _try,
        "await_expression": note_tag("async", "await"),
        "async_block": note_tag("async", "async_block"),
        "compound_assignment_expr": note_addition,
        "return_expression": note_return,
        "macro_invocation": _macro,
    },
    calls={"call_expression": _call},
    blocks=frozenset({"expression_statement"}),
)
