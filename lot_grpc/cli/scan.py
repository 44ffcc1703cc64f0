"""``lot-grpc scan``: secrets in what a running server has stored."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import grpc
import typer
from typer import Option

from lot_grpc.cli.calls import StreamingServer
from lot_grpc.cli.options import JsonLines, Namespace
from lot_grpc.cli.tables import Column, print_table, screen
from lot_grpc.cli.texts import clean
from lot_grpc.cli.words import RESOURCE_KINDS
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from lot_grpc.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub

if TYPE_CHECKING:
    from lot_grpc.server.redactor import Redactor


@dataclass(frozen=True)
class Found:
    """Secrets of one rule in one field of a record."""

    namespace: str
    resource_kind: str
    id: str
    field: str
    rule: str
    count: int


def scan(
    *,
    namespace: Namespace = "",
    all_namespaces: bool = Option(False, "--all-namespaces", help="Scan all namespaces."),
    resource_kind: list[resource_kind_pb2.ResourceKind.ValueType] | None = RESOURCE_KINDS.option(
        None, "--kind", help="Only this kind, such as pattern or episode. Repeatable."
    ),
    server: StreamingServer,
    as_json: JsonLines = False,
) -> bool:
    """Find keys, tokens and passwords in what is stored, and say where. Never prints them.

    Works whether or not the server redacts. It uses the rules of the settings on this machine:
    LOT_REDACT_RULES adds files, LOT_REDACT_RULES_OFF switches rules off. Exit code 1: a secret was
    found.

    lot-grpc scan --all-namespaces

    lot-grpc scan -n team --kind memory --json
    """
    if namespace and all_namespaces:
        raise typer.BadParameter("--namespace and --all-namespaces are mutually exclusive")
    from lot_grpc.redaction import SecretFinder, read_rules
    from lot_grpc.server.redactor import Redactor
    from lot_grpc.settings_file import load_settings

    settings = load_settings(server.config).redact
    finder = SecretFinder(read_rules(settings.rules, settings.rules_off))
    redactor = Redactor(finder, pb.ExportRecord, names=True)
    request = pb.ExportRequest(
        namespace=namespace, all_namespaces=all_namespaces, resource_kinds=resource_kind
    )
    found: list[Found] = []
    total = 0
    with server.calling():
        for record in _records(server, request):
            total += 1
            for one in _found(redactor, record):
                found.append(one)
                if as_json:
                    typer.echo(json.dumps(asdict(one)))
    if not as_json:
        _print(found, total)
    return not found


def _records(server: StreamingServer, request: pb.ExportRequest) -> Iterator[pb.ExportRecord]:
    def opened(channel: grpc.Channel) -> Iterable[pb.ExportResponse]:
        return AdminServiceStub(channel).Export(request)

    for message in server.resumed(opened, lambda: "after what was scanned"):
        yield from message.records
        request.after_cursor = message.cursor or request.after_cursor


def _found(redactor: Redactor, record: pb.ExportRecord) -> Iterator[Found]:
    from lot_grpc.ports import Record
    from lot_grpc.server.redaction import secrets_in
    from lot_grpc.services.resources import REGISTRY

    form = record.stored_form.fields
    row = Record("", record.namespace, json.loads(form["row"].string_value))
    fields = secrets_in(redactor, record, row.payload)
    if not fields:
        return
    collection = REGISTRY.exported[form["of"].string_value]
    safe_id, _ = redactor.finder.redact(collection.name(row))
    for field, rules in fields:
        for rule, count in Counter(rules).items():
            yield Found(record.namespace, collection.resource_kind, safe_id, field, rule, count)


def _print(found: list[Found], total: int) -> None:
    if found:
        columns = [
            Column[Found]("namespace", lambda one: one.namespace),
            Column[Found]("kind", lambda one: one.resource_kind),
            Column[Found]("id", lambda one: clean(one.id)),
            Column[Found]("field", lambda one: clean(one.field)),
            Column[Found]("rule", lambda one: one.rule),
            Column[Found]("count", lambda one: f"{one.count:,}"),
        ]
        print_table(screen(), columns, found)
    secrets = counted(sum(one.count for one in found), "secret")
    records = {(one.namespace, one.resource_kind, one.id) for one in found}
    where = f" in {counted(len(records), 'record')}" if found else ""
    typer.echo(f"{secrets}{where}; {counted(total, 'record')} scanned")
