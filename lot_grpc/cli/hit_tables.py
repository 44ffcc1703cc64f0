"""What ``lot-grpc recall`` prints for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from lot_grpc.cli.pattern_texts import rate_text, usage_text
from lot_grpc.cli.screen import print_line
from lot_grpc.cli.tables import Column, print_fields, print_table
from lot_grpc.cli.texts import clean, one_line
from lot_grpc.cli.words import PATTERN_KINDS, PATTERN_TYPES, RANKINGS
from lot_grpc.domain.counting import counted
from lot_grpc.domain.spans import span
from lot_grpc.domain.text_form import visible
from lot_grpc.pb.lot.v1 import outcome_pb2, pattern_pb2
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb

_INDENT = 4
_LIKE_QUERIES = 3
"""Most of them that are told of one hit."""


def name_of(pattern: pattern_pb2.Pattern) -> Text:
    """What it is called or for, on one line; what not to do says so."""
    name = one_line(visible(pattern.title) or pattern.task)
    if pattern.pattern_type in (
        pattern_pb2.PATTERN_TYPE_UNSPECIFIED,
        pattern_pb2.PATTERN_TYPE_SUCCESS,
    ):
        return Text(name)
    failure = pattern.pattern_type == pattern_pb2.PATTERN_TYPE_FAILURE
    word = PATTERN_TYPES.word(pattern.pattern_type)
    return Text.assemble((f"{word}: ", "red" if failure else "cyan"), name)


# The task comes last: letters that run from right to left would move what stands behind them.
_SIMILARITY = Column[pb.PatternHit]("similarity", lambda hit: f"{hit.similarity:.2f}", numeric=True)
_MATCH = Column[pb.PatternHit]("match", lambda hit: _match_text(hit), numeric=True)
_COLUMNS = (
    Column[pb.PatternHit]("rate", lambda hit: rate_text(hit.pattern.outcomes), numeric=True),
    Column[pb.PatternHit]("used", lambda hit: usage_text(hit.pattern.outcomes), numeric=True),
    Column[pb.PatternHit]("kind", lambda hit: PATTERN_KINDS.word(hit.pattern.kind), 1),
    Column[pb.PatternHit]("language", lambda hit: one_line(hit.pattern.language), 2),
    Column[pb.PatternHit]("id", lambda hit: clean(hit.pattern.pattern_id), folded=True),
    Column[pb.PatternHit]("task", lambda hit: name_of(hit.pattern)),
)

LISTED = (
    "pattern_id",
    "kind",
    "pattern_type",
    "title",
    "task",
    "language",
    "outcomes",
    "create_time",
)
"""The fields of a pattern that a row shows, of a hit or of a list."""


def print_hits(console: Console, hits: Sequence[pb.PatternHit]) -> None:
    """A row for each, best first, in the columns for which there is room."""
    near = [_SIMILARITY, _MATCH] if any(_match_text(hit) for hit in hits) else [_SIMILARITY]
    print_table(console, [*near, *_COLUMNS], hits, "task")


def _match_text(hit: pb.PatternHit) -> str:
    """How likely it is for the same task; empty where the server does not know."""
    return f"{hit.match_probability:.2f}" if hit.HasField("match_probability") else ""


def print_explanation(console: Console, answer: pb.RecallPatternsResponse) -> None:
    """What each score is made of, what it was learned from, and what the filter kept out."""
    for hit in answer.hits:
        print_line(console, (clean(hit.pattern.pattern_id), "bold"), (f"  {score_text(hit)}", ""))
        for learned in hit.learned_from[:_LIKE_QUERIES]:
            print_line(console, (_learned(learned), "dim"), indent=_INDENT)
    if answer.hits:
        console.print()
    print_fields(console, _fields(answer))


def score_text(hit: pb.PatternHit) -> str:
    """The score and the parts whose weighted sum it is."""
    return f"score {hit.score:.3f}{parts_text(hit.score_parts)}"


def parts_text(parts: Iterable[outcome_pb2.ScorePart]) -> str:
    """`` = 0.812 similarity + 0.1 · 0.5 learned``; empty without parts."""
    told = [
        f"{part.value:.3f} {one_line(part.name)}"
        if part.weight == 1
        else f"{part.weight:.3g} · {part.value:.3f} {one_line(part.name)}"
        for part in parts
    ]
    return f" = {' + '.join(told)}" if told else ""


def _learned(learned: pb.LearnedFrom) -> str:
    return (
        f"learned from {learned.success_count:.3g} of {learned.trial_count:.3g} on a query "
        f"{learned.similarity:.2f} alike: {one_line(learned.query)}"
    )


def _fields(answer: pb.RecallPatternsResponse) -> Iterable[tuple[str, str]]:
    told = answer.explanation
    yield "ranking", RANKINGS.word(told.ranking)
    yield "ranked", counted(told.pool_size, "candidate")
    yield "let through", f"{told.matching_count:,} of {counted(told.namespace_count, 'pattern')}"
    for removed in told.filters:
        yield one_line(removed.field), f"keeps {removed.removed_count:,} out"
    if told.gate:
        yield "gate", f"{told.gate:.3f} below the best, what was learned may reorder"
    if told.HasField("half_life"):
        yield "half-life", span(told.half_life.ToTimedelta().total_seconds())
    if told.HasField("seed"):
        yield "seed", f"{told.seed}"
    yield "retrieval id", answer.retrieval_id
