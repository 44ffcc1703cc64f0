"""``lot-grpc review``: what is pending, and ``AdminService.ReviewRecords``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer
from rich.text import Text
from typer import Argument, Option

from lot_grpc.cli.calls import Server
from lot_grpc.cli.lists import listed
from lot_grpc.cli.options import JsonLines, Namespace
from lot_grpc.cli.origin_texts import origin_text
from lot_grpc.cli.tables import Column, print_table, screen
from lot_grpc.cli.texts import clean, one_line
from lot_grpc.cli.words import RESOURCE_KINDS, REVIEW_STATES, json_line
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import (
    error_solution_pb2,
    memory_service_pb2,
    origin_pb2,
    pattern_service_pb2,
    resource_kind_pb2,
)
from lot_grpc.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub
from lot_grpc.pb.lot.v1.memory_service_pb2_grpc import MemoryServiceStub
from lot_grpc.pb.lot.v1.pattern_service_pb2_grpc import PatternServiceStub

_STATES = {
    "approve": origin_pb2.REVIEW_STATE_APPROVED,
    "reject": origin_pb2.REVIEW_STATE_REJECTED,
    "reopen": origin_pb2.REVIEW_STATE_PENDING,
}


@dataclass(frozen=True)
class _Listed:
    """How the records of a kind are listed."""

    stub: Any
    method: str
    request: Any
    field: str
    text: str

    def pending(self, channel: Any, namespace: str, timeout: float) -> Iterator[Any]:
        """The pending ones."""
        filter_of = type(self.request().filter)
        narrowed = filter_of(reviews=[origin_pb2.REVIEW_STATE_PENDING])
        request = self.request(namespace=namespace, filter=narrowed)
        yield from listed(getattr(channel, self.method), request, self.field, timeout)


_KINDS = {
    resource_kind_pb2.RESOURCE_KIND_MEMORY: _Listed(
        MemoryServiceStub,
        "ListMemories",
        memory_service_pb2.ListMemoriesRequest,
        "memories",
        "content",
    ),
    resource_kind_pb2.RESOURCE_KIND_PATTERN: _Listed(
        PatternServiceStub,
        "ListPatterns",
        pattern_service_pb2.ListPatternsRequest,
        "patterns",
        "task",
    ),
    resource_kind_pb2.RESOURCE_KIND_ERROR_SOLUTION: _Listed(
        MemoryServiceStub,
        "ListErrorSolutions",
        error_solution_pb2.ListErrorSolutionsRequest,
        "error_solutions",
        "error_message",
    ),
}


def review(
    *,
    ids: list[str] | None = Argument(
        None, metavar="ID[=ETAG]", help="Records to review. Without any, list what is pending."
    ),
    resource_kind: resource_kind_pb2.ResourceKind.ValueType | None = RESOURCE_KINDS.option(
        None, "--kind", help="memory, pattern or error_solution. Required with IDs."
    ),
    approve: bool = Option(False, "--approve", help="Approve them, so that recalls return them."),
    reject: bool = Option(False, "--reject", help="Reject them, so that recalls omit them."),
    reopen: bool = Option(False, "--reopen", help="Make them pending again."),
    note: str = Option("", "--note", help="Note to keep with the review."),
    namespace: Namespace = "",
    server: Server,
    as_json: JsonLines = False,
) -> bool:
    """List what is pending, or approve or reject it.

    With `ID=ETAG`, a record that was edited since it had this etag is not reviewed.

    lot-grpc review

    lot-grpc review --kind memory --approve m-17 m-18 --note "checked against the wiki"
    """
    verdicts = {"approve": approve, "reject": reject, "reopen": reopen}
    chosen = [name for name, given in verdicts.items() if given]
    if resource_kind is not None and resource_kind not in _KINDS:
        raise typer.BadParameter("--kind is memory, pattern or error_solution")
    if not ids:
        if chosen:
            raise typer.BadParameter("give the IDs of the records to review")
        _print_pending(server, namespace, resource_kind, as_json=as_json)
        return True
    if len(chosen) != 1 or resource_kind is None:
        raise typer.BadParameter("IDs need --kind and one of --approve, --reject and --reopen")
    request = pb.ReviewRecordsRequest(
        namespace=namespace,
        resource_kind=resource_kind,
        items=map(_item, ids),
        state=_STATES[chosen[0]],
        note=note,
    )
    with server.stub(AdminServiceStub) as stub:
        answer = stub.ReviewRecords(request, timeout=server.timeout)
    for result in answer.results:
        typer.echo(json_line(result) if as_json else _result_text(result))
    return not answer.failed_count


def _item(given: str) -> pb.ReviewItem:
    record_id, _, etag = given.partition("=")
    return pb.ReviewItem(id=record_id, etag=etag)


def _result_text(result: pb.ReviewResult) -> str:
    if result.HasField("error"):
        return f"{clean(result.id)}: {clean(result.error.message)}"
    state = REVIEW_STATES.word(result.review.state)
    return f"{clean(result.id)}: {state}{'' if result.changed else ' already'}"


def _print_pending(
    server: Server,
    namespace: str,
    resource_kind: resource_kind_pb2.ResourceKind.ValueType | None,
    *,
    as_json: bool,
) -> None:
    rows: list[tuple[str, Any, str]] = []
    for kind, how in _KINDS.items():
        if resource_kind in (None, kind):
            with server.stub(how.stub) as stub:
                for one in how.pending(stub, namespace, server.timeout):
                    if as_json:
                        typer.echo(json_line(one))
                    else:
                        rows.append((RESOURCE_KINDS.word(kind), one, getattr(one, how.text)))
    if rows:
        print_table(screen(), _COLUMNS, rows)
    elif not as_json:
        typer.echo("Nothing is pending.")


# Text by agents comes last: right-to-left letters would move whatever follows them.
_COLUMNS = (
    Column[tuple[str, Any, str]]("kind", lambda row: row[0]),
    Column[tuple[str, Any, str]](
        "id", lambda row: getattr(row[1], f"{row[0].replace(' ', '_')}_id"), folded=True
    ),
    Column[tuple[str, Any, str]]("etag", lambda row: row[1].etag, 1),
    Column[tuple[str, Any, str]]("by", lambda row: origin_text(row[1].origin), folded=True),
    Column[tuple[str, Any, str]]("text", lambda row: Text(one_line(row[2])), stretched=True),
)
