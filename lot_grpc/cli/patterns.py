"""``lot-grpc patterns``: lists patterns, or shows one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import typer
from rich.console import Console
from rich.text import Text
from typer import Argument, Option

from lot_grpc.cli.calls import Server
from lot_grpc.cli.failures import print_note
from lot_grpc.cli.fields import field_text
from lot_grpc.cli.lists import listed, print_list
from lot_grpc.cli.options import JsonLines, Namespace, PatternOptions, limit_option
from lot_grpc.cli.origin_texts import origin_text, review_text
from lot_grpc.cli.pattern_texts import (
    LISTED,
    OUTCOME_STYLES,
    name_of,
    outcomes_text,
    rate_text,
    usage_text,
)
from lot_grpc.cli.tables import Column, print_code, print_message, print_table, screen
from lot_grpc.cli.texts import data_text
from lot_grpc.cli.words import CODE_KINDS, OUTCOMES, PATTERN_KINDS, json_line
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import pattern_pb2
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1.pattern_service_pb2_grpc import PatternServiceStub

_LISTED = 20
_OUTCOMES = 10


def patterns(
    *,
    pattern_id: str = Argument(
        "", metavar="ID", help="Show this pattern in full, with its last outcomes."
    ),
    options: PatternOptions,
    limit: int = limit_option("20, or 10 outcomes of one pattern"),
    everything: bool = Option(False, "--all", help="All patterns, or all outcomes of one."),
    namespace: Namespace = "",
    server: Server,
    as_json: JsonLines = False,
) -> None:
    """List patterns, newest first; or show one with its actions, code and outcomes.

    lot-grpc patterns --language go --min-usage 1

    lot-grpc patterns p-17
    """
    narrowed = options.filter()
    if pattern_id and narrowed.ByteSize():
        raise typer.BadParameter("an ID only goes with --limit or --all")
    if limit and everything:
        raise typer.BadParameter("--limit and --all are mutually exclusive")
    if everything:
        limit = sys.maxsize
    with server.stub(PatternServiceStub) as stub:
        if pattern_id:
            request = pb.GetPatternRequest(namespace=namespace, pattern_id=pattern_id)
            pattern = stub.GetPattern(request, timeout=server.timeout).pattern
            if as_json:
                typer.echo(json_line(pattern))
            else:
                _print_one(stub, namespace, pattern, limit or _OUTCOMES, server.timeout)
        else:
            print_list(
                stub.ListPatterns,
                pb.ListPatternsRequest(namespace=namespace, filter=narrowed),
                "patterns",
                _COLUMNS,
                timeout=server.timeout,
                limit=limit or _LISTED,
                read=LISTED,
                more="--limit N shows N, --all shows all",
                as_json=as_json,
            )


# Text by agents comes last: right-to-left letters would move whatever follows them.
_COLUMNS = (
    Column[pattern_pb2.Pattern]("id", "pattern_id", folded=True),
    Column[pattern_pb2.Pattern]("kind", "kind", 2),
    Column[pattern_pb2.Pattern]("rate", lambda one: rate_text(one.outcomes), numeric=True),
    Column[pattern_pb2.Pattern]("used", lambda one: usage_text(one.outcomes), numeric=True),
    Column[pattern_pb2.Pattern]("created", "create_time", 1),
    Column[pattern_pb2.Pattern]("language", "language", 3),
    Column[pattern_pb2.Pattern]("task", name_of, stretched=True),
)


def _print_one(
    stub: PatternServiceStub,
    namespace: str,
    pattern: pattern_pb2.Pattern,
    limit: int,
    timeout: float,
) -> None:
    request = pb.ListOutcomesRequest(namespace=namespace, pattern_id=pattern.pattern_id)
    outcomes = list(listed(stub.ListOutcomes, request, "outcomes", timeout, limit))
    console = screen()
    _print_pattern(console, pattern)
    _print_outcomes(console, outcomes)
    if request.page_token:
        last = counted(len(outcomes), "outcome")
        print_note(f"only the last {last}: --limit N shows N, --all shows all")


def _print_pattern(console: Console, pattern: pattern_pb2.Pattern) -> None:
    kind = PATTERN_KINDS.word(pattern.kind)
    if pattern.code_kind:
        kind += f": {CODE_KINDS.word(pattern.code_kind)}"
    print_message(
        console,
        pattern,
        first=("pattern_id", "title", "kind", "pattern_type", "outcomes", "last_used"),
        hidden=("code", "code_kind", "feedback", "namespace", "etag", "ttl"),
        kind=kind,
        outcomes=outcomes_text(pattern.outcomes),
        last_used=field_text(pattern.outcomes, "last_used_time"),
        confidence=_confidence(pattern),
        origin=origin_text(pattern.origin),
        review=review_text(pattern.review),
        actions="\n".join(_actions(pattern.actions)),
    )
    if pattern.code:
        console.print()
        print_code(console, pattern.code, pattern.language)


def _confidence(pattern: pattern_pb2.Pattern) -> str:
    if not pattern.HasField("confidence"):
        return ""
    feedback = pattern.feedback
    if not feedback.feedback_count:
        return f"{pattern.confidence:.2f}"
    return (
        f"{pattern.confidence:.2f} after {counted(feedback.feedback_count, 'rating')}: "
        f"{feedback.helpful_count:,} helpful, {feedback.unhelpful_count:,} unhelpful"
    )


def _actions(actions: Iterable[pattern_pb2.Action]) -> Iterable[str]:
    for number, action in enumerate(actions, 1):
        arguments = f" {data_text(action.args)}" if action.args.fields else ""
        note = f" ({action.note})" if action.note else ""
        yield f"{number}. {action.tool}{arguments}{note}"


def _print_outcomes(console: Console, outcomes: Sequence[pb.OutcomeEntry]) -> None:
    if outcomes:
        print_table(console, _OUTCOME_COLUMNS, outcomes)


def _outcome(entry: pb.OutcomeEntry) -> Text:
    word = OUTCOMES.word(entry.outcome) if entry.outcome else "nothing"
    if entry.corrected_by_outcome_id:
        return Text.assemble((word, "strike"), " corrected")
    style = OUTCOME_STYLES.get(entry.outcome, "")
    return Text(f"{word} instead" if entry.corrects_outcome_id else word, style)


def _about(entry: pb.OutcomeEntry) -> str:
    corrects = f"corrects {entry.corrects_outcome_id}" if entry.corrects_outcome_id else ""
    query = "saved again" if entry.from_repeated_save else entry.query
    return "; ".join(filter(None, (corrects, query, entry.note)))


_OUTCOME_COLUMNS = (
    Column[pb.OutcomeEntry]("when", "create_time"),
    Column[pb.OutcomeEntry]("outcome", _outcome),
    Column[pb.OutcomeEntry]("took", "duration", 3, numeric=True),
    Column[pb.OutcomeEntry]("id", "outcome_id", 1, folded=True),
    Column[pb.OutcomeEntry]("about", _about, stretched=True),
)
