"""``lot-grpc errors``: what fixed an error like this one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import typer
from rich.console import Console
from rich.text import Text
from typer import Argument, Option

from lot_grpc.cli.calls import Server, print_notices
from lot_grpc.cli.failures import print_note
from lot_grpc.cli.options import Json, Namespace, Repeatable, limit_option, min_match_option
from lot_grpc.cli.origin_texts import origin_text
from lot_grpc.cli.pattern_texts import outcomes_text, parts_text
from lot_grpc.cli.tables import print_fields, screen
from lot_grpc.cli.texts import one_line
from lot_grpc.cli.words import json_line
from lot_grpc.pb.lot.v1 import error_solution_pb2 as pb
from lot_grpc.pb.lot.v1.memory_service_pb2_grpc import MemoryServiceStub

_STDIN = "-"
_MESSAGE = 300
"""Characters shown of a stored message, which may be a whole log."""

_CONTEXT = 1000
"""Characters shown of the context, which may be a whole file."""

_DIFFERENCES = 6
"""Differences shown per hit."""


def errors(
    *,
    message: str = Argument(
        "",
        metavar="MESSAGE",
        help="The error message, or a whole stack trace; - reads standard input.",
    ),
    error_type: str = Option(
        "",
        "--type",
        metavar="TYPE",
        help="Its type, such as `TypeError`: only solutions of this type or of none. Without "
        "MESSAGE, search by type alone.",
    ),
    language: str = Option("", "--language", help="Only for this language."),
    category: Repeatable = Option(
        None, "--category", help="Only for tasks in this category. Repeatable."
    ),
    limit: int = limit_option("3", 100),
    head: bool = Option(
        False,
        "--head",
        help="If there is more than 64 KiB, use its beginning instead of its end: compilers "
        "print what matters first.",
    ),
    unsolved: bool = Option(
        False, "--unsolved", help="Also show what did not help with similar errors."
    ),
    min_match: float | None = min_match_option("solutions of similar errors", "0.02"),
    explain: bool = Option(False, "--explain", help="Explain the scores."),
    namespace: Namespace = "",
    server: Server,
    as_json: Json = False,
) -> None:
    """Find what fixed an error: the same one first, then similar ones, and what did not help.

    lot-grpc errors "ModuleNotFoundError: No module named 'yaml'"

    cargo build 2>&1 | lot-grpc errors - --language rust
    """
    if not message.strip() and not error_type:
        raise typer.BadParameter("give MESSAGE, - to read it from standard input, or --type")
    with server.stub(MemoryServiceStub) as stub:
        request = pb.FindErrorSolutionsRequest(
            namespace=namespace,
            error_type=error_type,
            error_message=_error_message(message, head=head, required=not error_type),
            language=language,
            categories=category,
            limit=limit,
            include_unsolved=unsolved,
            min_match=min_match,
            explain=explain,
        )
        answer = stub.FindErrorSolutions(request, timeout=server.timeout)
    if as_json:
        typer.echo(json_line(answer))
    else:
        _print(screen(), answer)
        print_notices(answer.notices)


def _error_message(message: str, *, head: bool, required: bool) -> str:
    """The error, cut to what the server accepts, with a note if it was."""
    error: ErrorText
    if message == _STDIN:
        if sys.stdin.isatty():
            print_note("reading the error from the terminal; Ctrl-D ends it")
        error = from_stream(sys.stdin.buffer, head=head)
    else:
        error = fitting(message, head=head)
    if required and not error.text.strip():
        source = "standard input" if message == _STDIN else "MESSAGE"
        raise typer.BadParameter(f"there is no error to search for: {source} is empty")
    if error.cut:
        used = f"only the {'first' if head else 'last'} {len(error.text.encode()):,} of"
        other = "leave out --head to use the end" if head else "--head uses the beginning"
        print_note(f"searching for {used} {error.given_bytes:,} bytes; {other}")
    return error.text


def _print(console: Console, answer: pb.FindErrorSolutionsResponse) -> None:
    """Print a block per solution, best first; then, separately, what was tried and failed."""
    if not answer.hits:
        typer.echo("No known solution.")
    _print_blocks(console, answer.hits)
    if answer.unsolved:
        console.print(Text("\nTried without success\n", style="bold red"))
        _print_blocks(console, answer.unsolved)


def _print_blocks(console: Console, hits: Sequence[pb.ErrorSolutionHit]) -> None:
    for number, hit in enumerate(hits):
        if number:
            console.print()
        console.print(_head(hit), no_wrap=True, overflow="ellipsis", crop=True)
        print_fields(console, _fields(hit), indent=2)


def _head(hit: pb.ErrorSolutionHit) -> Text:
    """How it was found, how near it is, and the stored error."""
    solution = hit.error_solution
    error = ": ".join(filter(None, (solution.error_type, solution.error_message[:_MESSAGE])))
    if hit.match != pb.ERROR_MATCH_EXACT_SIGNATURE:
        found = ("similar", "bold yellow")
    elif hit.differences:
        found = ("same error, different details", "bold green")
    else:
        found = ("same error", "bold green")
    near = f"  {hit.similarity:.2f}  "
    if hit.HasField("match_probability"):
        near += f"match {hit.match_probability:.2f}  "
    return Text.assemble(found, (near, "dim"), one_line(error))


def _fields(hit: pb.ErrorSolutionHit) -> Iterable[tuple[str, str | Text]]:
    solution = hit.error_solution
    helped = not solution.HasField("worked") or solution.worked
    yield "differs", _differences(hit.differences)
    yield "fix" if helped else "tried", solution.resolution
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(solution.steps, 1))
    yield "steps" if helped or solution.resolution else "tried", steps
    yield "language", solution.language
    yield "origin", origin_text(solution.origin)
    more = "…" if len(solution.context) > _CONTEXT else ""
    yield "context", solution.context[:_CONTEXT] + more
    yield "outcomes", outcomes_text(solution.outcomes)
    yield "score", f"{hit.score:.3f}{parts_text(hit.score_parts)}" if hit.score_parts else ""
    yield "id", solution.error_solution_id


def _differences(differences: Sequence[pb.ErrorDifference]) -> Text:
    """A line for each: the part, its value here, and its value there."""
    lines = Text()
    for number, one in enumerate(differences[:_DIFFERENCES]):
        lines.append("\n" if number else "")
        lines.append(f"{one_line(one.part)} ")
        lines.append(one_line(one.given, _MESSAGE) or "nothing", "bold")
        lines.append(" here, ")
        lines.append(one_line(one.stored, _MESSAGE) or "nothing", "bold")
        lines.append(" there")
    if len(differences) > _DIFFERENCES:
        lines.append(f"\nand {len(differences) - _DIFFERENCES:,} more")
    return lines


MAX_BYTES = 65_536
"""The longest message that the contract allows."""

_CHUNK = 65_536
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor movement
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MARGIN = 4
"""How many times longer than its plain text a coloured text may be; the rest is dropped."""


@dataclass(frozen=True)
class ErrorText:
    """The part of an error to search with, and the size of the whole in bytes."""

    text: str
    given_bytes: int

    @property
    def cut(self) -> bool:
        """Whether the error was too long."""
        return self.given_bytes > MAX_BYTES


def fitting(text: str, *, head: bool) -> ErrorText:
    """The last whole lines that fit, or with ``head`` the first ones, without escapes."""
    raw = without_escapes(text).encode("utf-8", "replace")
    if len(raw) <= MAX_BYTES:
        return ErrorText(raw.decode(), len(raw))
    part = raw[:MAX_BYTES] if head else raw[-MAX_BYTES:]
    decoded = part.decode("utf-8", "ignore")
    lines = decoded.rpartition("\n")[0] if head else decoded.partition("\n")[2]
    return ErrorText(lines if lines.strip() else decoded, len(raw))


def from_stream(stream: BinaryIO, *, head: bool) -> ErrorText:
    """The output of a tool, without terminal escapes.

    All of it is read, so that the tool neither blocks nor breaks; what is not needed is dropped.
    Bytes that are not UTF-8 become U+FFFD.
    """
    data, total = bytearray(), 0
    most = _MARGIN * MAX_BYTES
    while chunk := stream.read(_CHUNK):
        total += len(chunk)
        if not head:
            data += chunk
            del data[:-most]
        elif len(data) < most:
            data += chunk
    found = fitting(data.decode("utf-8", "replace").lstrip("\ufffd"), head=head)
    return ErrorText(found.text, total if total > len(data) else found.given_bytes)


def without_escapes(text: str) -> str:
    """The plain text: no colours, titles, links or control characters except tab and newline."""
    plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", plain)
