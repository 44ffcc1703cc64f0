"""``lot-grpc retrievals``: what was recalled, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable

import typer
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.text import Text
from typer import Argument, Option

from lot_grpc.cli.calls import Server
from lot_grpc.cli.lists import print_list
from lot_grpc.cli.options import JsonLines, Namespace, limit_option, time_option
from lot_grpc.cli.pattern_texts import OUTCOME_STYLES, parts_text
from lot_grpc.cli.tables import Column, print_line, print_message, print_table, screen
from lot_grpc.cli.texts import clean
from lot_grpc.cli.words import OUTCOMES, RANKINGS, RESOURCE_KINDS, RETRIEVAL_METHODS, json_line
from lot_grpc.pb.lot.v1 import outcome_pb2, resource_kind_pb2
from lot_grpc.pb.lot.v1 import retrieval_pb2 as pb
from lot_grpc.pb.lot.v1.learning_service_pb2_grpc import LearningServiceStub

_LISTED = 20


def retrievals(
    *,
    retrieval_id: str = Argument("", metavar="ID", help="Show this retrieval in full."),
    method: list[pb.RetrievalMethod.ValueType] | None = RETRIEVAL_METHODS.option(
        None,
        "--method",
        help="recall_patterns, recall_episodes, search_memories, find_error_solutions or "
        "get_task_context. Repeatable.",
    ),
    kind: list[resource_kind_pb2.ResourceKind.ValueType] | None = RESOURCE_KINDS.option(
        None,
        "--kind",
        help="Showed a record of this kind: memory, pattern, episode or error_solution. "
        "Repeatable.",
    ),
    item: str = Option("", "--item", metavar="ID", help="Showed the record with this ID."),
    outcome: bool | None = Option(
        None, "--outcome/--no-outcome", help="Only those with an outcome, or only those without."
    ),
    holdout: bool | None = Option(
        None,
        "--holdout/--no-holdout",
        help="Only those held out, or only those compared with them.",
    ),
    principal: str = Option(
        "", "--principal", metavar="NAME", help="Made by the principal with this name."
    ),
    after: Timestamp | None = time_option(
        "--after", "Made after this time: ISO 8601, or how long ago, such as 2h or 3d."
    ),
    before: Timestamp | None = time_option("--before", "Made before this time."),
    limit: int = limit_option("20"),
    namespace: Namespace = "",
    server: Server,
    as_json: JsonLines = False,
) -> None:
    """List retrievals, newest first; or show what one of them showed, and how it went.

    lot-grpc retrievals --after 1d --no-outcome

    lot-grpc retrievals --item p-17

    lot-grpc retrievals r-4jecvy8jjfxj70mz
    """
    narrowed = pb.RetrievalFilter(
        methods=method,
        item_kinds=kind,
        item_id=item,
        created_after=after,
        created_before=before,
        has_outcome=outcome,
        holdout=holdout,
        principal=principal,
    )
    if retrieval_id and (limit or narrowed.ByteSize()):
        raise typer.BadParameter("an ID cannot be combined with options that narrow the list")
    with server.stub(LearningServiceStub) as stub:
        if retrieval_id:
            request = pb.GetRetrievalRequest(namespace=namespace, retrieval_id=retrieval_id)
            found = stub.GetRetrieval(request, timeout=server.timeout).retrieval
            if as_json:
                typer.echo(json_line(found))
            else:
                _print_one(screen(), found)
        else:
            print_list(
                stub.ListRetrievals,
                pb.ListRetrievalsRequest(namespace=namespace, filter=narrowed),
                "retrievals",
                _COLUMNS,
                timeout=server.timeout,
                limit=limit or _LISTED,
                read=_READ,
                as_json=as_json,
            )


def _words(outcomes: Iterable[int]) -> Text:
    """Outcomes, coloured; empty without any."""
    return Text(", ").join(
        Text(OUTCOMES.word(one), OUTCOME_STYLES.get(one, "")) for one in outcomes if one
    )


def _used(one: pb.Retrieval) -> str:
    used = sum(item.outcome != outcome_pb2.OUTCOME_UNSPECIFIED for item in one.items)
    return f"{used} of {len(one.items)}"


# Text by agents comes last: right-to-left letters would move whatever follows them.
_COLUMNS = (
    Column[pb.Retrieval]("id", "retrieval_id", folded=True),
    Column[pb.Retrieval]("when", "create_time", 2),
    Column[pb.Retrieval]("method", lambda one: RETRIEVAL_METHODS.word(one.method), 1),
    Column[pb.Retrieval]("used", _used, numeric=True),
    Column[pb.Retrieval]("outcome", lambda one: _words(each.outcome for each in one.outcomes)),
    Column[pb.Retrieval]("query", "query", stretched=True),
)
_READ = ("retrieval_id", "create_time", "method", "items", "outcomes", "query")


def _print_one(console: Console, found: pb.Retrieval) -> None:
    """Print what was asked, what was shown, and the outcomes that name the retrieval."""
    print_message(
        console,
        found,
        first=("retrieval_id", "method", "query", "principal"),
        hidden=("namespace", "items", "outcomes"),
        method=RETRIEVAL_METHODS.word(found.method),
        ranking=RANKINGS.word(found.ranking) if found.ranking else "",
    )
    if found.items:
        print_table(console, _ITEM_COLUMNS, found.items)
    for item in found.items:
        parts = f"  score {item.score:.3f}{parts_text(item.score_parts)}"
        print_line(console, (clean(item.id), "bold"), (parts, "dim"))
    if found.outcomes:
        console.print()
        print_table(console, _OUTCOME_COLUMNS, found.outcomes)


_ITEM_COLUMNS = (
    Column[pb.RetrievedItem]("kind", lambda one: RESOURCE_KINDS.word(one.resource_kind)),
    Column[pb.RetrievedItem]("similarity", "similarity", form=".2f"),
    Column[pb.RetrievedItem]("match", "match_probability", 1, form=".2f"),
    Column[pb.RetrievedItem]("outcome", lambda one: _words([one.outcome])),
    Column[pb.RetrievedItem]("etag", "etag", 2),
    Column[pb.RetrievedItem]("id", "id", folded=True, stretched=True),
)
_OUTCOME_COLUMNS = (
    Column[pb.RetrievalOutcome]("when", "create_time"),
    Column[pb.RetrievalOutcome]("outcome", lambda one: _words([one.outcome])),
    Column[pb.RetrievalOutcome]("id", "outcome_id", 1, folded=True),
    Column[pb.RetrievalOutcome](
        "used", lambda one: ", ".join(used.id for used in one.used) or "nothing"
    ),
    Column[pb.RetrievalOutcome]("note", "note", stretched=True),
)
