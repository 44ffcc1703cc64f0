"""The pieces found in source code, and the places that could not be parsed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.pattern import CodeKind

_LOW_UP_TO = 5
_MEDIUM_UP_TO = 10


class CodeForm(StrEnum):
    """What a piece of code is in its grammar, whatever it is most telling as."""

    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"
    HANDLER = "handler"
    LOOP = "loop"
    STATEMENT = "statement"


@dataclass(frozen=True, slots=True)
class CodePiece:
    """One piece of a source text, cut out of it as it stands.

    Attributes:
        form: what it is in its grammar. HANDLER, LOOP and STATEMENT have no name of their own:
            theirs is that of the definition around them, empty at the top level.
        kind: its most specific kind; see ``docs/code.md``.
        word: its language's term for it, for example ``struct``.
        name: qualified by its scope, for example ``Stack.push``.
        code: its source, a part of the text that was parsed.
        first_line, last_line: counted from 1, both included.
        signature: the text before its body, on one line; for a loop its head.
        doc: its doc comment or docstring as it stands, empty for none.
        parameters: names in order, at most 255, for a method without the object it is called on.
        cyclomatic_complexity: McCabe's number; of a class that of its most complex method.
        methods: names of a class's own methods, in order, each once.
        caught: names of the errors that it handles by type, in order, each once.
        tags: what else is true of it, sorted.
    """

    form: CodeForm
    kind: CodeKind
    word: str
    name: str
    code: str
    first_line: int
    last_line: int
    signature: str = ""
    doc: str = ""
    parameters: tuple[str, ...] = ()
    cyclomatic_complexity: int = 1
    methods: tuple[str, ...] = ()
    method_count: int = 0
    caught: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedCode:
    """The pieces in the order of the text, and messages on what was omitted and why."""

    pieces: tuple[CodePiece, ...]
    unparsed: tuple[str, ...] = ()


def complexity_level(cyclomatic: int) -> Complexity:
    """LOW up to 5, MEDIUM up to 10, HIGH beyond.

    10 is the bound that McCabe gave ("A Complexity Measure", IEEE TSE 2(4), 1976), 5 half of it.
    """
    if cyclomatic <= _LOW_UP_TO:
        return Complexity.LOW
    return Complexity.MEDIUM if cyclomatic <= _MEDIUM_UP_TO else Complexity.HIGH
