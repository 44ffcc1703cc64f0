"""Splits source text into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tree_sitter import Node

from lot_grpc.domain.code_shapes import CodeForm, CodePiece, ParsedCode
from lot_grpc.domain.errors import LimitExceededError
from lot_grpc.domain.pattern import CodeKind
from lot_grpc.parsing import ecmascript, go, java, python, rust
from lot_grpc.parsing.found import PARTS, Found
from lot_grpc.parsing.grammars import tree_of
from lot_grpc.parsing.interface import MAX_TOTAL_BYTES
from lot_grpc.parsing.rules import Rules
from lot_grpc.parsing.walk import Walk

MAX_PIECE_BYTES: Final = 256 * 1024
"""Maximum size of a pattern's code in bytes."""

_LONGEST_DOC = 4_000
_LONGEST_LINE = 300
_LONGEST_SHOWN = 80
_MOST_NAMES = 255

_RULES: Final[dict[str, Rules]] = {
    "go": go.RULES,
    "java": java.RULES,
    "javascript": ecmascript.RULES,
    "python": python.RULES,
    "rust": rust.RULES,
    "typescript": ecmascript.RULES,
}


def parse_code(code: str, language: str) -> ParsedCode:
    """The pieces of a text in one of ``interface.LANGUAGES``.

    Memory and time are not limited here, but in ``sandbox``. Raises LimitExceededError for a text
    with too many pieces, or with pieces that are too large in total.
    """
    source = code.encode()
    rules = _RULES[language]
    walk = Walk(tree_of(source, language), source, rules)
    walk.run()
    cut = _Cut(source, rules, walk)
    unparsed = cut.broken()
    pieces = []
    fitting = []
    for found, kind in sorted(walk.found, key=lambda one: (one[0].start, -one[0].node.end_byte)):
        if found.node.end_byte - found.start > MAX_PIECE_BYTES:
            unparsed.append(cut.too_large(found))
        else:
            fitting.append((found, kind))
    total = sum(found.node.end_byte - found.start for found, _ in fitting)
    if total > MAX_TOTAL_BYTES:
        raise LimitExceededError(
            f"the pieces of the code have {total:,} bytes in total, since they nest; at most "
            f"{MAX_TOTAL_BYTES:,} are allowed: send the code in smaller parts",
            limit=MAX_TOTAL_BYTES,
            given=total,
        )
    for found, kind in fitting:
        pieces.append(cut.piece(found, kind))
    return ParsedCode(tuple(pieces), tuple(unparsed))


class _Cut:
    """Extracts pieces from a text."""

    def __init__(self, source: bytes, rules: Rules, walk: Walk) -> None:
        self._source = source
        self._rules = rules
        self._walk = walk

    def piece(self, found: Found, kind: CodeKind) -> CodePiece:
        """The piece at a place in the tree."""
        definition, traits = found.definition, found.traits
        methods, count, complexity = tuple(found.methods), found.method_count, traits.complexity
        if found.form is CodeForm.CLASS:
            complexity = found.highest
            owned = self._walk.owned.get(definition.name if definition else "")
            if owned is not None and definition is not None and not definition.owner:
                methods = tuple({**found.methods, **owned.names})
                count, complexity = count + owned.count, max(complexity, owned.highest)
        doc = definition.doc if definition is not None and definition.doc else self._doc(found)
        return CodePiece(
            form=found.form,
            kind=kind,
            word=definition.word if definition is not None else found.form.value,
            name=self._name(found),
            code=self._text(found.start, found.node.end_byte),
            first_line=self._row(found.start, found.node) + 1,
            last_line=_last_row(found.node) + 1,
            signature=self._signature(found),
            doc=doc[:_LONGEST_DOC],
            parameters=definition.parameters[:_MOST_NAMES] if definition is not None else (),
            cyclomatic_complexity=complexity,
            methods=methods[:_MOST_NAMES],
            method_count=count,
            caught=tuple(traits.caught)[:_MOST_NAMES],
            tags=tuple(sorted(traits.tags | ({found.form.value} - {form.value for form in PARTS}))),
        )

    def broken(self) -> list[str]:
        """A message for each place that could not be parsed, and one that counts any others."""
        problems = []
        for node, scope in self._walk.broken:
            inside = f" in {self._joined(scope)}" if scope else ""
            where = self._place(node)
            if node.is_missing:
                problems.append(f"{where}: {node.type} is missing{inside}"[: 4 * _LONGEST_LINE])
                continue
            shown = self._line(node.start_byte, node.end_byte, _LONGEST_SHOWN)
            problems.append(f"{where}: cannot be parsed{inside}: {shown}"[: 4 * _LONGEST_LINE])
        more = self._walk.broken_count - len(problems)
        if more:
            problems.append(f"and {more:,} more places")
        return problems

    def too_large(self, found: Found) -> str:
        """The message for a piece that is larger than a pattern may be."""
        size = found.node.end_byte - found.start
        return (
            f"{self._place(found.node)}: {self._name(found) or found.form.value} has {size:,} "
            f"bytes, but a pattern may have {MAX_PIECE_BYTES:,}; it is omitted, but not the pieces "
            "in it"
        )[: 4 * _LONGEST_LINE]

    # --- texts --------------------------------------------------------------------------------

    def _text(self, start: int, end: int) -> str:
        return self._source[start:end].decode(errors="ignore")

    def _line(self, start: int, end: int, longest: int) -> str:
        """A span of source on one line, cut if it is longer than ``longest``."""
        text = " ".join(self._text(start, min(end, start + 8 * longest)).split())
        cut = len(text) > longest or end > start + 8 * longest
        return f"{text[: longest - 1]}…" if cut else text

    def _name(self, found: Found) -> str:
        definition = found.definition
        if found.form in PARTS or definition is None:
            return self._joined(found.scope)
        return self._joined((*found.scope, definition.title or definition.name))

    def _joined(self, names: Sequence[str]) -> str:
        """A qualified name on one line: in broken code a name may span several."""
        return " ".join(self._rules.joint.join(names).split())

    def _signature(self, found: Found) -> str:
        definition, node = found.definition, found.node
        if found.form in {CodeForm.HANDLER, CodeForm.STATEMENT}:
            return ""
        body = definition.body if definition is not None else node.child_by_field_name("body")
        # Rust and TypeScript have attributes before the node, Python has decorators inside it.
        start = node.start_byte
        inner = node.child_by_field_name("definition")
        if inner is not None and node.type == "decorated_definition":
            start = inner.start_byte
        end = body.start_byte if body is not None and body.start_byte > start else node.end_byte
        line = self._line(start, end, _LONGEST_LINE)
        for mark in ("{", "=>", ":", "="):
            line = line.removesuffix(mark).rstrip()
        return line

    def _doc(self, found: Found) -> str:
        """The comments directly above, without a blank line between."""
        nearest = found.leading[0] if found.leading else found.node
        row = nearest.start_point.row
        kept: list[Node] = []
        for comment in reversed(found.comments):
            if comment.start_byte > found.start:
                continue
            if _last_row(comment) < row - 1:
                break
            kept.append(comment)
            row = comment.start_point.row
        if not kept:
            return ""
        return self._text(kept[-1].start_byte, kept[0].end_byte)

    # --- places -------------------------------------------------------------------------------

    def _row(self, start: int, node: Node) -> int:
        return node.start_point.row - self._source.count(b"\n", start, node.start_byte)

    def _place(self, node: Node) -> str:
        row, column = node.start_point
        before = self._source[node.start_byte - column : node.start_byte]
        return f"line {row + 1}, column {len(before.decode(errors='ignore')) + 1}"


def _last_row(node: Node) -> int:
    """The row of a node's last character. Some nodes end at the start of the next row."""
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point.row else row
