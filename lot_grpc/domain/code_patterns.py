"""Pieces of code as patterns: their titles, and the texts by which they are found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lot_grpc.domain.code_shapes import CodeForm, CodePiece, complexity_level
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.origin import BY_SERVER
from lot_grpc.domain.pattern import CodeKind, PatternContent, PatternKind
from lot_grpc.domain.search_text import spoken

_LANGUAGES = {
    "go": "Go",
    "java": "Java",
    "javascript": "JavaScript",
    "python": "Python",
    "rust": "Rust",
    "typescript": "TypeScript",
}
_SHAPES = {
    "accumulation": "accumulation",
    "binary_search": "binary search",
    "divide_and_conquer": "divide and conquer",
    "error_handling": "error handling",
    "nested_loops": "nested loops",
    "promise": "promises",
    "recursion": "recursion",
    "search": "search",
}
"""Tags that the text of a pattern names, since queries use these words."""

_CONSTRUCTORS = (".__init__", ".constructor", "::new")
_GO_CONSTRUCTOR = re.compile(r"func [Nn]ew\w*(?:\[.*?\])?\(.*\) \(?\*?(\w+)(?![\w.])")
"""The signature of a function named ``New…``; its group is the type that it returns."""

_NO_BODY = re.compile(r"\bpass\b|\W+")
"""What a body without a statement is made of."""

_LONGEST_TITLE = 1024
"""Bytes, as the contract says."""

_LONGEST_CODE = 262_144
"""Bytes of a pattern's code, as the contract says."""

_LONGEST_DOC = 400
_MOST_NAMED = 5
_MARKS = re.compile(r"^\s*(?:///?!?|/\*\*?|\*/|\*|#+!?)\s?|\s*\*/\s*$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(])|\n\s*\n|\n\s*(?=@\w)|\n\s*(?=:\w)")


def piece_content(
    piece: CodePiece, language: str, context: str, success_metrics: Mapping[str, Any]
) -> PatternContent:
    """A piece as the content of a CODE pattern."""
    return PatternContent(
        task=piece_task(piece, language),
        kind=PatternKind.CODE,
        code_kind=piece.kind,
        title=piece_title(piece),
        context=context,
        code=piece.code,
        language=language,
        complexity=complexity_level(piece.cyclomatic_complexity),
        tags=piece.tags,
        metadata=_metadata(piece, success_metrics),
        origin=BY_SERVER,
    )


def worth_a_pattern(pieces: Iterable[CodePiece]) -> Iterator[CodePiece]:
    """The pieces of a text that are worth a pattern, in order.

    A definition with an empty body says nothing. A constructor is part of its class's code, and
    would outrank it in queries for the class; only if the class is not a piece (broken, too large)
    is a constructor of several lines a piece by itself. In Go they are outside their struct, and
    are added to its code.
    """
    in_class_to = 0
    for piece in _with_go_constructors([one for one in pieces if not _is_empty(one)]):
        if piece.form is CodeForm.CLASS:
            in_class_to = max(in_class_to, piece.last_line)
        elif _is_constructor(piece) and (piece.first_line <= in_class_to or _is_short(piece)):
            continue
        yield piece


def _with_go_constructors(pieces: Sequence[CodePiece]) -> list[CodePiece]:
    """The pieces, with the functions that make a struct added to the code of that struct."""
    structs = {piece.name: at for at, piece in enumerate(pieces) if piece.word == "struct"}
    whole: list[CodePiece | None] = list(pieces)
    for at, piece in enumerate(pieces):
        made = _GO_CONSTRUCTOR.match(piece.signature) if piece.word == "function" else None
        struct = whole[structs[made[1]]] if made is not None and made[1] in structs else None
        if made is not None and struct is not None:
            code = f"{struct.code}\n\n{piece.code}"
            if len(code.encode()) <= _LONGEST_CODE:
                whole[structs[made[1]]], whole[at] = replace(struct, code=code), None
    return [piece for piece in whole if piece is not None]


def _is_empty(piece: CodePiece) -> bool:
    if piece.form not in {CodeForm.CLASS, CodeForm.FUNCTION, CodeForm.METHOD}:
        return False
    code = piece.code.replace(piece.doc, "", 1)
    body = " ".join(code.split()).removeprefix(" ".join(piece.signature.split()))
    return not _NO_BODY.sub("", body)


def _is_constructor(piece: CodePiece) -> bool:
    named = piece.name.endswith(_CONSTRUCTORS) or piece.word == "constructor"
    return piece.form is CodeForm.METHOD and named


def _is_short(piece: CodePiece) -> bool:
    code = piece.code.replace(piece.doc, "", 1)
    return sum(bool(_NO_BODY.sub("", line)) for line in code.splitlines()) <= 2


def piece_pattern_id(content: PatternContent) -> str:
    """The id of a piece: the same for the same code, name, language and context."""
    return "code-" + content_hash([content.language, content.title, content.context, content.code])


def piece_title(piece: CodePiece) -> str:
    """The qualified name, or the enclosing scope of a piece without one. At most 1 KiB."""
    where = piece.name or "the top level"
    title = {
        CodeForm.HANDLER: f"error handling in {where}",
        CodeForm.LOOP: f"loop at {where}",
        CodeForm.STATEMENT: f"asynchronous statement at {where}",
    }.get(piece.form, piece.name)
    if len(title.encode()) <= _LONGEST_TITLE:
        return title
    return "…" + title.encode()[-(_LONGEST_TITLE - 3) :].decode(errors="ignore")


def piece_task(piece: CodePiece, language: str) -> str:
    """What it does, in a sentence or two by which it is found.

    The first sentence of its documentation; its name as words; what it is, with its signature; and
    the shapes that people ask for by name.
    """
    summary = first_sentence(piece.doc)
    parts = [f"{_full_stop(summary)} {_words(piece)}" if summary else _words(piece)]
    parts.append(f": {_LANGUAGES.get(language, language)} {_what(piece)}")
    if piece.signature:
        parts.append(f" `{piece.signature}`")
    shapes = [spelled for tag, spelled in _SHAPES.items() if tag in piece.tags]
    if shapes and piece.form is not CodeForm.HANDLER:
        parts.append(f" ({', '.join(shapes)})")
    return "".join(parts)


def first_sentence(doc: str) -> str:
    """The first sentence of a comment or docstring, in one line, without its marks."""
    text = _MARKS.sub("", doc).strip()
    sentence = " ".join(_SENTENCE_END.split(text, maxsplit=1)[0].split())
    return sentence if len(sentence) <= _LONGEST_DOC else sentence[: _LONGEST_DOC - 1] + "…"


def _metadata(piece: CodePiece, success_metrics: Mapping[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "first_line": piece.first_line,
        "last_line": piece.last_line,
        "cyclomatic_complexity": piece.cyclomatic_complexity,
    }
    if piece.form is CodeForm.CLASS:
        metadata["method_count"] = piece.method_count
        metadata["methods"] = list(piece.methods)
    if piece.form in {CodeForm.FUNCTION, CodeForm.METHOD}:
        metadata["parameters"] = list(piece.parameters)
    if piece.signature:
        metadata["signature"] = piece.signature
    if piece.caught:
        metadata["caught_errors"] = list(piece.caught)
    if success_metrics:
        metadata["success_metrics"] = dict(success_metrics)
    return metadata


def _words(piece: CodePiece) -> str:
    """A name as words, of what it belongs to last: ``Stack.push`` → ``Push (Stack)``."""
    parts = [part for part in re.split(r"\.|::", piece.name) if part]
    if piece.form is CodeForm.HANDLER:
        caught = ", ".join(piece.caught[:_MOST_NAMED]) or "errors"
        where = _spoken(parts[-1]) if parts else "a program"
        return f"Handle {caught} in {where}"
    if piece.form is CodeForm.LOOP:
        return "Loop"
    if piece.form is CodeForm.STATEMENT:
        return "Asynchronous statement"
    if not parts:
        return "Piece of code"
    name = _spoken(parts[-1]) or parts[-1]
    around = f" ({' '.join(parts[:-1])})" if len(parts) > 1 else ""
    return name[:1].upper() + name[1:] + around


def _spoken(name: str) -> str:
    words = spoken(name).replace("_", " ").split()
    return " ".join(word if word.isupper() else word.lower() for word in words)


def _what(piece: CodePiece) -> str:
    if piece.form is CodeForm.HANDLER:
        return "error handling"
    if piece.form is CodeForm.LOOP:
        return "loop"
    if piece.form is CodeForm.STATEMENT:
        return "code with promises" if "promise" in piece.tags else "asynchronous code"
    if piece.form is CodeForm.CLASS:
        count = piece.method_count
        return f"{piece.word} with {count} method{'' if count == 1 else 's'}"
    return f"{'async ' if piece.kind is CodeKind.ASYNC else ''}{piece.word}"


def _full_stop(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?", "…")) else f"{sentence}."
