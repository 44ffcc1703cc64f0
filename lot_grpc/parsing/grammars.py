"""Grammars by language, and source text to a syntax tree, within a bounded time."""

from __future__ import annotations

import time
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

from lot_grpc.domain.errors import LimitExceededError

LONGEST_SECONDS: Final = 5.0
"""How long one text may keep a processor busy: a mebibyte of code does 0.15 s, of noise up to 9."""

_CHUNK: Final = 4096
"""Bytes that the parser is given at once."""

_TURN_SECONDS: Final = 0.001
_REST_SECONDS: Final = 0.001

_GRAMMARS: Final[Mapping[str, tuple[Callable[[], object], ...]]] = {
    "go": (tree_sitter_go.language,),
    "java": (tree_sitter_java.language,),
    "javascript": (tree_sitter_javascript.language,),
    "python": (tree_sitter_python.language,),
    "rust": (tree_sitter_rust.language,),
    # Casts in angle brackets are only in the first, elements (TSX) only in the second.
    "typescript": (
        tree_sitter_typescript.language_typescript,
        tree_sitter_typescript.language_tsx,
    ),
}

LANGUAGES: Final = tuple(sorted(_GRAMMARS))
"""The languages that there is a grammar for."""


class Turn:
    """Lets other threads go first, half of the time: all work here holds the interpreter's lock.

    Without a rest, a thread that wants the lock gets it after 5 ms, each time it asks.
    """

    def __init__(self) -> None:
        self._since = time.perf_counter()
        self._end = time.thread_time() + LONGEST_SECONDS

    def rest(self) -> bool:
        """Rest if the turn has lasted; True when all of the time is used up."""
        if time.perf_counter() - self._since < _TURN_SECONDS:
            return False
        time.sleep(_REST_SECONDS)
        self._since = time.perf_counter()
        return time.thread_time() >= self._end


@lru_cache(maxsize=16)
def _grammar(load: Callable[[], object]) -> Language:
    return Language(load())


def tree_of(source: bytes, language: str) -> Tree:
    """The syntax tree of UTF-8. Of several grammars the one that understands most of it.

    Raises LimitExceededError after ``LONGEST_SECONDS``.
    """
    best: Tree | None = None
    for load in _GRAMMARS[language]:
        tree = _parse(source, _grammar(load), language)
        if not tree.root_node.has_error:
            return tree
        if best is None or _not_understood(tree) < _not_understood(best):
            best = tree
    assert best is not None
    return best


def _parse(source: bytes, grammar: Language, language: str) -> Tree:
    turn = Turn()
    parser = Parser(grammar)

    def read(offset: int, _: object) -> bytes:
        return source[offset : offset + _CHUNK]

    def over(_: int, __: bool) -> bool:
        return turn.rest()

    try:
        return parser.parse(read, encoding="utf8", progress_callback=over)
    except ValueError:
        raise LimitExceededError(
            f"the code took more than {LONGEST_SECONDS:g} s of a processor to parse: it is not "
            f"{language}, or too much of it is broken; send it in smaller parts",
            limit=f"{LONGEST_SECONDS:g}",
            given=len(source),
        ) from None


def _not_understood(tree: Tree) -> int:
    """Bytes in places that are not understood; a missing token counts as one."""
    turn = Turn()
    count = 0
    cursor = tree.walk()
    while True:
        node = cursor.node
        assert node is not None
        turn.rest()
        if node.is_error or node.is_missing:
            count += max(1, node.end_byte - node.start_byte)
        elif node.has_error and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return count
