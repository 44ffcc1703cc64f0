"""``lot-grpc recall``: the patterns that fit a task."""

from __future__ import annotations

from collections.abc import Iterable

import typer
from google.protobuf.field_mask_pb2 import FieldMask
from rich.console import Console
from typer import Argument, Option

from lot_grpc.cli.calls import Server, print_notices
from lot_grpc.cli.fields import field_text
from lot_grpc.cli.options import (
    Json,
    Namespace,
    PatternOptions,
    limit_option,
    min_match_option,
)
from lot_grpc.cli.pattern_texts import LISTED, name_of, parts_text, rate_text, usage_text
from lot_grpc.cli.tables import Column, print_fields, print_line, print_table, screen
from lot_grpc.cli.texts import clean, one_line
from lot_grpc.cli.words import RANKINGS, json_line
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1.pattern_service_pb2_grpc import PatternServiceStub

_EVIDENCE = 3
"""Queries shown per hit."""


def recall(
    *,
    query: str = Argument(..., metavar="TEXT", help="The task, in words."),
    patterns: PatternOptions,
    limit: int = limit_option("5", 100),
    ranking: outcome_pb2.Ranking.ValueType = RANKINGS.option(
        "balanced",
        "--ranking",
        help="balanced, relevance, similarity, reliable or explore.",
        metavar="HOW",
    ),
    min_match: float | None = min_match_option("patterns"),
    explain: bool = Option(False, "--explain", help="Explain the results and their order."),
    namespace: Namespace = "",
    server: Server,
    as_json: Json = False,
) -> None:
    """Find the patterns that fit a task, best first, with how well they worked.

    lot-grpc recall "add pagination to a REST endpoint"

    lot-grpc recall "retry a request" --language python --kind code --ranking reliable
    """
    if not query.strip():
        raise typer.BadParameter("TEXT must not be empty")
    request = pb.RecallPatternsRequest(
        namespace=namespace,
        query=query,
        filter=patterns.filter(),
        limit=limit,
        ranking=ranking,
        min_match=min_match,
        explain=explain,
        read_mask=None if as_json else FieldMask(paths=LISTED),
    )
    with server.stub(PatternServiceStub) as stub:
        answer = stub.RecallPatterns(request, timeout=server.timeout)
    if as_json:
        typer.echo(json_line(answer))
        return
    console = screen()
    if answer.hits:
        known = any(hit.HasField("match_probability") for hit in answer.hits)
        near = (_SIMILARITY, _MATCH) if known else (_SIMILARITY,)
        print_table(console, (*near, *_COLUMNS), answer.hits)
    else:
        typer.echo("No patterns match.")
    if explain:
        _print_explanation(console, answer)
    print_notices(answer.notices)


# The task comes last: right-to-left letters would move whatever follows them.
_SIMILARITY = Column[pb.PatternHit]("similarity", "similarity", form=".2f")
_MATCH = Column[pb.PatternHit]("match", "match_probability", form=".2f")
_COLUMNS = (
    Column[pb.PatternHit]("rate", lambda hit: rate_text(hit.pattern.outcomes), numeric=True),
    Column[pb.PatternHit]("used", lambda hit: usage_text(hit.pattern.outcomes), numeric=True),
    Column[pb.PatternHit]("kind", "pattern.kind", 1),
    Column[pb.PatternHit]("language", "pattern.language", 2),
    Column[pb.PatternHit]("id", "pattern.pattern_id", folded=True),
    Column[pb.PatternHit]("task", lambda hit: name_of(hit.pattern), stretched=True),
)


def _print_explanation(console: Console, answer: pb.RecallPatternsResponse) -> None:
    """Print the parts of each score, what was learned, and what the filter excluded."""
    for hit in answer.hits:
        score = f"  score {hit.score:.3f}{parts_text(hit.score_parts)}"
        print_line(console, (clean(hit.pattern.pattern_id), "bold"), (score, ""))
        for learned in hit.outcome_evidence[:_EVIDENCE]:
            trials = f"{learned.success_count:.3g} of {learned.trial_count:.3g} worked"
            query = f"for a query {learned.similarity:.2f} similar: {one_line(learned.query)}"
            print_line(console, (f"learned from {trials} {query}", "dim"), indent=4)
    if answer.hits:
        console.print()
    print_fields(console, _explanation(answer))


def _explanation(answer: pb.RecallPatternsResponse) -> Iterable[tuple[str, str]]:
    found = answer.explanation
    yield "ranking", RANKINGS.word(found.ranking)
    yield "ranked", counted(found.candidate_count, "candidate")
    yield "matching", f"{found.matching_count:,} of {counted(found.namespace_count, 'pattern')}"
    for one in found.filters:
        yield one_line(one.field), f"excludes {one.excluded_count:,}"
    if found.reorder_margin:
        yield (
            "margin",
            f"{found.reorder_margin:.3f}: learning reorders only results this close to the best",
        )
    yield "half-life", field_text(found, "half_life")
    yield "seed", field_text(found, "seed").replace(",", "")
    yield "retrieval id", answer.retrieval_id
