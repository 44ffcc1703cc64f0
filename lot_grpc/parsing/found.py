"""A piece being built: its place in the tree, what was seen in it, and its kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node

from lot_grpc.domain.code_shapes import CodeForm
from lot_grpc.domain.pattern import CodeKind
from lot_grpc.parsing.rules import Definition, NodeTraits

_TELLING: Final = frozenset(
    {
        "accumulation",
        "binary_search",
        "divide_and_conquer",
        "nested_loops",
        "recursion",
        "search",
    }
)
"""Shapes that show what a function does; a loop alone does not."""

_FORMS = {
    CodeForm.FUNCTION: CodeKind.FUNCTION,
    CodeForm.METHOD: CodeKind.METHOD,
    CodeForm.CLASS: CodeKind.CLASS,
    CodeForm.HANDLER: CodeKind.ERROR_HANDLER,
    CodeForm.LOOP: CodeKind.ALGORITHM,
    CodeForm.STATEMENT: CodeKind.ASYNC,
}

PARTS: Final = frozenset({CodeForm.HANDLER, CodeForm.LOOP, CodeForm.STATEMENT})
"""Forms without a name of their own."""


@dataclass(slots=True, eq=False)
class Found:
    """A piece being built.

    ``node`` is the node to extract, ``leading`` the attributes and decorators before it,
    ``comments`` the comments above. ``scope`` names the enclosing scope; for a part, the definition
    around it. ``sole``: it is a handler that is all its function does. ``highest`` is the
    complexity of a class's most complex method.
    """

    form: CodeForm
    node: Node
    traits: NodeTraits
    scope: tuple[str, ...]
    definition: Definition | None = None
    leading: tuple[Node, ...] = ()
    comments: tuple[Node, ...] = ()
    sole: bool = False
    methods: dict[str, None] = field(default_factory=dict)
    method_count: int = 0
    highest: int = 1

    @property
    def start(self) -> int:
        """The byte at which it begins."""
        return self.leading[0].start_byte if self.leading else self.node.start_byte

    def tell_shapes(self) -> None:
        """Tag the shapes that follow from its traits."""
        traits, tags = self.traits, self.traits.tags
        if traits.self_calls:
            tags.add("recursion")
        if traits.self_calls >= 2 and traits.halvings:
            tags.add("divide_and_conquer")
        if (
            traits.midpoints
            and ("iteration" in tags or traits.self_calls)
            and traits.self_calls < 2
        ):
            tags.add("binary_search")
            tags.discard("search")
        if traits.added & traits.returned:
            tags.add("accumulation")

    def kind(self, *, handles_alone: bool) -> CodeKind:
        """Its most specific kind. ``handles_alone``: all it does is handle errors."""
        if self.form in {CodeForm.FUNCTION, CodeForm.METHOD}:
            if "async" in self.traits.tags:
                return CodeKind.ASYNC
            if self.traits.tags & _TELLING:
                return CodeKind.ALGORITHM
            if handles_alone:
                return CodeKind.ERROR_HANDLER
        return _FORMS[self.form]
