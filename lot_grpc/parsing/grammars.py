"""Grammars by language, and the parsing of source text into a syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_rust
import tree_sitter_typescript
from tree_sitter import Language, Parser, Tree

_GRAMMARS: Final[Mapping[str, tuple[Callable[[], object], ...]]] = {
    "go": (tree_sitter_go.language,),
    "java": (tree_sitter_java.language,),
    "javascript": (tree_sitter_javascript.language,),
    "python": (tree_sitter_python.language,),
    "rust": (tree_sitter_rust.language,),
    # Only the first has casts in angle brackets, only the second has elements (TSX).
    "typescript": (
        tree_sitter_typescript.language_typescript,
        tree_sitter_typescript.language_tsx,
    ),
}


@lru_cache(maxsize=16)
def _grammar(load: Callable[[], object]) -> Language:
    return Language(load())


def tree_of(source: bytes, language: str) -> Tree:
    """The syntax tree of UTF-8 source, by the grammar that understands most of it."""
    best: Tree | None = None
    for load in _GRAMMARS[language]:
        tree = Parser(_grammar(load)).parse(source, encoding="utf8")
        if not tree.root_node.has_error:
            return tree
        if best is None or _not_understood(tree) < _not_understood(best):
            best = tree
    assert best is not None
    return best


def _not_understood(tree: Tree) -> int:
    """Bytes that could not be parsed; a missing token counts as one."""
    count = 0
    cursor = tree.walk()
    while True:
        node = cursor.node
        assert node is not None
        if node.is_error or node.is_missing:
            count += max(1, node.end_byte - node.start_byte)
        elif node.has_error and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return count
