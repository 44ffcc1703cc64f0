"""What ``lot-grpc errors`` prints for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lot_grpc.cli.hit_tables import parts_text
from lot_grpc.cli.pattern_texts import outcomes_text
from lot_grpc.cli.texts import clean_lines, one_line
from lot_grpc.pb.lot.v1 import error_solution_pb2 as pb

_INDENT = 2
_MESSAGE = 300
"""Letters of a stored message; it may be a whole log."""

_CONTEXT = 1000
"""Letters of when it came; it may be a whole file."""

_DIFFERENCES = 6
"""Most that are told of one hit."""


def print_found(console: Console, answer: pb.FindErrorSolutionsResponse) -> None:
    """A block for each solution, best first; then, apart, what was tried and did not help."""
    if not answer.hits:
        console.print(Text("No solution is known."))
    _print_blocks(console, answer.hits)
    if answer.unsolved:
        console.print()
        console.print(Text("What was tried and did not help", style="bold red"))
        console.print()
        _print_blocks(console, answer.unsolved)


def _print_blocks(console: Console, hits: Sequence[pb.ErrorSolutionHit]) -> None:
    for number, hit in enumerate(hits):
        if number:
            console.print()
        console.print(_head(hit), no_wrap=True, overflow="ellipsis", crop=True)
        console.print(_body(hit))


def _head(hit: pb.ErrorSolutionHit) -> Text:
    """How it was found, how near it is, and the error that is stored."""
    exact = hit.match == pb.ERROR_MATCH_EXACT_SIGNATURE
    solution = hit.error_solution
    error = ": ".join(filter(None, (solution.error_type, solution.error_message[:_MESSAGE])))
    if not exact:
        found = ("similar", "bold yellow")
    elif hit.differences:
        found = ("same error, other details", "bold green")
    else:
        found = ("same error", "bold green")
    return Text.assemble(found, (f"  {hit.similarity:.2f}  ", "dim"), one_line(error))


def _body(hit: pb.ErrorSolutionHit) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, text in _fields(hit):
        if text:
            shown = text if isinstance(text, Text) else Text(clean_lines(text))
            table.add_row(" " * _INDENT + name, shown)
    return table


def _fields(hit: pb.ErrorSolutionHit) -> Iterable[tuple[str, str | Text]]:
    solution = hit.error_solution
    helped = not solution.HasField("worked") or solution.worked
    yield "differs", _differences(hit.differences)
    yield "fix" if helped else "tried", solution.resolution
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(solution.steps, 1))
    yield "steps" if helped or solution.resolution else "tried", steps
    yield "language", solution.language
    more = "…" if len(solution.context) > _CONTEXT else ""
    yield "when", solution.context[:_CONTEXT] + more
    yield "outcomes", outcomes_text(solution.outcomes)
    yield "score", f"{hit.score:.3f}{parts_text(hit.score_parts)}" if hit.score_parts else ""
    yield "id", solution.error_solution_id


def _differences(differences: Sequence[pb.ErrorDifference]) -> Text:
    """A line each: what it is, what it is here, and what it was there."""
    told = Text()
    for number, one in enumerate(differences[:_DIFFERENCES]):
        told.append("\n" if number else "")
        told.append(f"{one_line(one.part)} ")
        told.append(one_line(one.given, _MESSAGE) or "nothing", "bold")
        told.append(" here, ")
        told.append(one_line(one.stored, _MESSAGE) or "nothing", "bold")
        told.append(" there")
    if len(differences) > _DIFFERENCES:
        told.append(f"\nand {len(differences) - _DIFFERENCES:,} more")
    return told
